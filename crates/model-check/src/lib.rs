//! No code: the model check is the test program `exhaustive`. Cargo sets the optimisation per package, and the simulator compiles faster
//! with less than the model check needs, so the two are separate packages.
