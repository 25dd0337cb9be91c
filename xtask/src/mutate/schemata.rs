//! Combines all mutations of a source: each function body that is mutated becomes a choice between its mutants.
//!
//! A mutant schema (Untch, Offutt, Harrold 1993) is built once and contains every mutant; an environment variable
//! activates one of them at run time. So a layer is built once and not once per mutation. A body becomes
//!
//! ```text
//! { match number { 7 => { body with mutation 7 } 9 => { body with mutation 9 } _ => { body } } }
//! ```
//!
//! A text outside of a function, or in a `const fn`, has no schema. A mutant that the compiler refuses next to the
//! others has none either, for example because each closure has a distinct type: [`Schemata::blamed`] finds such
//! mutants.

use std::ops::Range;

use syn::visit::{self, Visit};

/// Contains the number of the active mutation. If it is not set, no mutation is active.
pub(super) const VARIABLE: &str = "BELLWETHER_MUTATION";

/// One mutation of a source: its text and the replacement.
#[derive(Debug)]
pub(super) struct Mutant<'a> {
    /// Positive; activates the mutation.
    pub(super) number: usize,
    pub(super) text: Range<usize>,
    pub(super) replace: &'a str,
}

/// A source with its mutants.
#[derive(Debug, Default)]
pub(super) struct Schemata {
    pub(super) text: String,
    arms: Vec<Arm>,
}

/// The position of a mutant in the rewritten text, and that of its whole choice.
#[derive(Debug)]
struct Arm {
    number: usize,
    arm: Range<usize>,
    choice: Range<usize>,
}

/// A function body and its mutants.
struct Body<'a> {
    range: Range<usize>,
    mutants: Vec<&'a Mutant<'a>>,
}

impl Schemata {
    /// Rewrites a source. Mutants outside of functions are left out.
    pub(super) fn of(source: &str, mutants: &[Mutant<'_>]) -> syn::Result<Self> {
        let file = syn::parse_file(source)?;
        let mut bodies: Vec<Body<'_>> = Vec::new();
        for mutant in mutants {
            let Some(range) = enclosing_body(&file, &mutant.text) else { continue };
            match bodies.iter_mut().find(|body| body.range == range) {
                Some(body) => body.mutants.push(mutant),
                None => bodies.push(Body { range, mutants: vec![mutant] }),
            }
        }
        bodies.sort_by_key(|body| body.range.start);
        let mut schemata = Self::default();
        schemata.push(source, 0..source.len(), &bodies);
        Ok(schemata)
    }

    /// The numbers of the contained mutations.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.arms.iter().map(|arm| arm.number)
    }

    /// The mutations that caused a compiler error at these ranges: those whose mutant contains a range, or else all
    /// of the function.
    pub(super) fn blamed(&self, error: &[Range<usize>]) -> Vec<usize> {
        let meets =
            |place: &Range<usize>| error.iter().any(|at| at.start < place.end && place.start < at.end);
        let by = |place: fn(&Arm) -> &Range<usize>| -> Vec<usize> {
            self.arms.iter().filter(|arm| meets(place(arm))).map(|arm| arm.number).collect()
        };
        let blamed = by(|arm| &arm.arm);
        if blamed.is_empty() { by(|arm| &arm.choice) } else { blamed }
    }

    /// Copies a part of the source, and replaces each body in it by a choice.
    fn push(&mut self, source: &str, part: Range<usize>, bodies: &[Body<'_>]) {
        let mut copied = part.start;
        for body in bodies {
            // A body inside of another one is written with it.
            if body.range.start >= copied && body.range.end <= part.end {
                self.text.push_str(&source[copied..body.range.start]);
                self.push_choice(source, body, bodies);
                copied = body.range.end;
            }
        }
        self.text.push_str(&source[copied..part.end]);
    }

    fn push_choice(&mut self, source: &str, body: &Body<'_>, bodies: &[Body<'_>]) {
        let Range { start, end } = body.range;
        let (choice, first) = (self.text.len(), self.arms.len());
        self.text.push_str(&format!(
            "{{ static ACTIVE: ::std::sync::LazyLock<usize> = ::std::sync::LazyLock::new(|| \
             ::std::env::var(\"{VARIABLE}\").map_or(0, |number| number.parse().expect(\"a number\")));\n\
             match *ACTIVE {{\n"
        ));
        for Mutant { number, text, replace } in &body.mutants {
            self.text.push_str(&format!("{number} => "));
            let arm = self.text.len();
            self.text.push_str(&source[start..text.start]);
            self.text.push_str(replace);
            self.text.push_str(&source[text.end..end]);
            self.arms.push(Arm { number: *number, arm: arm..self.text.len(), choice: 0..0 });
            self.text.push('\n');
        }
        self.text.push_str("_ => {");
        let last = self.arms.len();
        self.push(source, start + 1..end - 1, bodies);
        self.text.push_str("}\n} }");
        let choice = choice..self.text.len();
        self.arms[first..last].iter_mut().for_each(|arm| arm.choice = choice.clone());
    }
}

/// The body of the innermost function around a text, with its braces. `None` in a `const fn`, which cannot read the
/// environment.
fn enclosing_body(file: &syn::File, text: &Range<usize>) -> Option<Range<usize>> {
    let mut search = Search { text, innermost: None };
    search.visit_file(file);
    search.innermost
}

struct Search<'a> {
    text: &'a Range<usize>,
    innermost: Option<Range<usize>>,
}

impl Search<'_> {
    fn enter(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let braces = block.brace_token.span;
        let body = braces.open().byte_range().start..braces.close().byte_range().end;
        if body.start < self.text.start && self.text.end < body.end {
            self.innermost = signature.constness.is_none().then_some(body);
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.enter(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        self.enter(&method.sig, &method.block);
        visit::visit_impl_item_fn(self, method);
    }

    fn visit_trait_item_fn(&mut self, method: &'ast syn::TraitItemFn) {
        if let Some(block) = &method.default {
            self.enter(&method.sig, block);
        }
        visit::visit_trait_item_fn(self, method);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces each text, in order; the numbers are 1, 2, …
    fn schemata(source: &str, changes: &[(&str, &'static str)]) -> Schemata {
        let mutants = changes.iter().enumerate().map(|(index, (text, replace))| {
            let start = source.find(text).unwrap();
            Mutant { number: index + 1, text: start..start + text.len(), replace }
        });
        let schemata = Schemata::of(source, &mutants.collect::<Vec<_>>()).unwrap();
        syn::parse_file(&schemata.text).unwrap();
        schemata
    }

    /// The text without the static, and with single spaces.
    fn plain(schemata: &Schemata) -> String {
        let lines = schemata.text.lines().map(|line| match line.find("{ static") {
            Some(at) => format!("{}{{", &line[..at]),
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_function_with_two_mutations_becomes_a_choice_of_three_bodies() {
        let source = "fn f(é: u8) -> u8 { if é > 1 { 2 } else { 3 } }\nfn g() {}";
        let schemata = schemata(source, &[("é > 1", "true"), ("3", "4")]);
        assert_eq!(
            plain(&schemata),
            "fn f(é: u8) -> u8 { match *ACTIVE { 1 => { if true { 2 } else { 3 } } 2 => { if é > 1 { 2 } else { 4 } } _ \
             => { if é > 1 { 2 } else { 3 } } } } fn g() {}"
        );
        assert_eq!(schemata.numbers().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn methods_and_default_methods_are_rewritten() {
        let method = schemata("impl A { async fn f(&self) { go() } }", &[("go()", "")]);
        let choice = "{ match *ACTIVE { 1 => { } _ => { go() } } } }";
        assert_eq!(plain(&method), format!("impl A {{ async fn f(&self) {choice}"));
        let default = schemata("trait A { fn f(&self) { go() } fn g(&self); }", &[("go()", "")]);
        assert!(plain(&default).contains("_ => { go() } } } fn g"), "{}", default.text);
    }

    #[test]
    fn a_mutant_of_an_outer_function_keeps_the_inner_one_unchanged() {
        let schemata = schemata("fn f() { fn g() { one() } two(); }", &[("one()", "1"), ("two()", "2")]);
        assert_eq!(
            plain(&schemata),
            "fn f() { match *ACTIVE { 2 => { fn g() { one() } 2; } _ => { fn g() { match *ACTIVE { 1 => { 1 } _ => { \
             one() } } } two(); } } }"
        );
        assert_eq!(schemata.numbers().collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_text_outside_of_a_function_or_in_a_const_fn_has_no_schema() {
        for source in ["const A: u8 = 7;", "const fn f() -> u8 { 7 }", "m! { fn f() -> u8 { 7 } }"] {
            let schemata = schemata(source, &[("7", "8")]);
            assert_eq!(schemata.text, source);
            assert_eq!(schemata.numbers().count(), 0);
        }
        let inner = schemata("const fn f() { fn g() -> u8 { 7 } }", &[("7", "8")]);
        assert_eq!(inner.numbers().count(), 1);
    }

    #[test]
    fn a_compiler_error_is_blamed_on_the_mutant_it_refers_to_or_on_the_whole_function() {
        let schemata = schemata(
            "fn f() { one(); two(); } fn g() { three() }",
            &[("one", "1"), ("two", "2"), ("three", "3")],
        );
        let at = |text: &str| {
            let start = schemata.text.find(text).unwrap();
            start..start + text.len()
        };
        assert_eq!(schemata.blamed(&[at("one(); 2()")]), [2]);
        assert_eq!(schemata.blamed(&[at("fn f"), at("1(); two")]), [1]);
        assert_eq!(schemata.blamed(&[at("match *ACTIVE")]), [1, 2]);
        assert!(schemata.blamed(&[at("fn g")]).is_empty());
    }
}
