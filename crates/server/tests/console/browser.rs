//! Headless Chromiums, driven through chromedriver.
//!
//! A browser takes two seconds of processor time to start. So a test uses one that an earlier test has left, in a new tab, which has
//! neither the session storage nor the emulated media of the tabs before it.
//!
//! Most tests run in [`SHELL`], if it is installed. [`browse_in_chromium`] is for tests whose result depends on the rest of the browser.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use bellwether_testkit::pause_after;
use fantoccini::error::CmdError;
use fantoccini::{Client, ClientBuilder, Locator};
use futures::FutureExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::ask::Ask;

/// Chromium without its user interface: the same engine. In single runs, the console's tests took 115 s of processor time in it and 160 in
/// Chromium. All of its tabs are visible at the same time.
const SHELL: &str = "/usr/bin/chromium-headless-shell";

/// The zone of the browser: two hours from UTC in summer, one in winter.
pub(crate) const ZONE: &str = "Europe/Berlin";

/// Time limit for anything that must appear.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// The size of the window at the start of a test.
const WINDOW: (u32, u32) = (1280, 900);

/// Ends chromedriver when the standard input is closed, at the latest with the process of the tests.
const GUARDED: &str = "chromedriver --port=0 & exec >/dev/null; cat; kill -KILL 0";

/// The messages of errors that a script did not expect.
const ERRORS: &str = "return [...document.querySelectorAll('.notice.error span')].map((one) => one.textContent) \
    .filter((text) => /is not (defined|a function)|(undefined|null) /.test(text))";

/// Looks for a second whether the page shows a text, or does not. In the page, because each command takes messages between four
/// processes.
const LOOK: &str = "const [text, shown, done] = arguments; const end = performance.now() + 1000; \
    const look = () => { \
        const found = document.body.innerText.includes(text) === shown; \
        if (found || performance.now() > end) done(found); else setTimeout(look, 20); \
    }; \
    look()";

/// The browsers that no test uses.
static IDLE: Mutex<Vec<Browser>> = Mutex::new(Vec::new());

/// Runs the connections to chromedriver. The runtime of a test ends with the test.
static CONNECTIONS: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime starts"));

/// chromedriver; dropping it kills it.
struct Driver {
    child: Child,
    port: u16,
}

impl Driver {
    /// chromedriver picks a free IPv4 port and ends if the same IPv6 port is in use, for example by another test.
    fn start() -> Self {
        (0..5).find_map(|_| Self::try_start()).expect(
            "chromedriver prints its port in one of five attempts: as root on Debian, apt-get install chromium chromium-driver",
        )
    }

    fn try_start() -> Option<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED]).env("TZ", ZONE);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().expect("sh starts");
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut driver = Self { child, port: 0 };
        driver.port = output.lines().map_while(Result::ok).find_map(|line| {
            line.strip_suffix('.')?.rsplit_once("started successfully on port ")?.1.parse().ok()
        })?;
        Some(driver)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        // It may have ended already.
        _ = killpg(group, Signal::SIGKILL);
        drop(self.child.wait());
    }
}

/// A browser with its driver.
struct Browser {
    client: Client,
    driver: Driver,
}

impl Browser {
    /// Returns a browser that no other test uses, with one new tab.
    async fn take() -> Self {
        let idle = IDLE.lock().unwrap().pop();
        let browser = match idle {
            Some(idle) => idle,
            None => Self::start(Path::new(SHELL).exists().then_some(SHELL)).await,
        };
        browser.renew().await.expect("the browser opens a tab");
        browser
    }

    /// Starts this browser instead of Chromium.
    async fn start(binary: Option<&'static str>) -> Self {
        CONNECTIONS.spawn(Self::connect(binary)).await.expect("the browser starts")
    }

    async fn connect(binary: Option<&'static str>) -> Self {
        let driver = Driver::start();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-extensions",
            // Otherwise a renderer starts for each page that is loaded, and another one ahead of it.
            "--disable-features=BackForwardCache,ProactivelySwapBrowsingInstance,SpareRendererForSitePerProcess",
            // With a pipe, the browser ends when chromedriver ends.
            "--remote-debugging-pipe",
            "--lang=en-US",
        ];
        let mut options = json!({"goog:chromeOptions": {"args": arguments}, "timeouts": {"script": 30_000}});
        if let Some(binary) = binary {
            options["goog:chromeOptions"]["binary"] = binary.into();
        }
        let Value::Object(capabilities) = options else { unreachable!("an object") };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let connecting = builder.capabilities(capabilities);
        let client = connecting.connect(&format!("http://127.0.0.1:{}", driver.port)).await.unwrap();
        Self { client, driver }
    }

    /// Replaces all tabs by a new one.
    async fn renew(&self) -> Result<(), CmdError> {
        let old = self.client.windows().await?;
        let new = self.client.new_window(true).await?.handle;
        for tab in old {
            self.client.switch_to_window(tab).await?;
            self.client.close_window().await?;
        }
        self.client.switch_to_window(new).await?;
        self.client.set_window_size(WINDOW.0, WINDOW.1).await
    }
}

/// Runs a test in a browser with the console of the gateway at `address`. After a failure there is a screenshot `failed-` with the
/// name of the test, and the browser is closed.
pub(crate) async fn browse(address: SocketAddr, test: impl AsyncFnOnce(Page)) {
    let browser = within(Browser::take().await, address, test).await;
    IDLE.lock().unwrap().push(browser);
}

/// As [`browse`], in Chromium, which is closed after the test.
pub(crate) async fn browse_in_chromium(address: SocketAddr, test: impl AsyncFnOnce(Page)) {
    let browser = Browser::start(None).await;
    browser.renew().await.expect("the browser opens a tab");
    within(browser, address, test).await;
}

/// Runs a test in this browser, and returns the browser.
async fn within(browser: Browser, address: SocketAddr, test: impl AsyncFnOnce(Page)) -> Browser {
    let (client, driver) = (browser.client.clone(), browser.driver.port);
    let page = Page { client, driver, base: format!("http://{address}/") };
    let failed = format!("failed-{}", std::thread::current().name().unwrap_or("test").replace("::", "-"));
    // That of an earlier run. It need not exist.
    drop(std::fs::remove_file(screenshot_file(&failed)));
    let checked = async {
        test(page.clone()).await;
        let errors = page.run(ERRORS).await;
        assert_eq!(errors, json!([]), "a script of the page failed");
    };
    let ended = AssertUnwindSafe(checked).catch_unwind().await;
    let Err(panic) = ended else {
        // The page would follow the events of the gateway, whose end the test may await.
        page.client.goto("about:blank").await.unwrap();
        return browser;
    };
    // The failure may be one of the browser, which then has no screenshot.
    drop(AssertUnwindSafe(page.screenshot(&failed)).catch_unwind().await);
    drop(browser);
    resume_unwind(panic);
}

/// A page of the console.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) client: Client,
    /// The port of chromedriver.
    driver: u16,
    base: String,
}

impl Page {
    /// Opens an address such as `#/jobs`.
    pub(crate) async fn open(&self, address: &str) {
        // An address that differs only in its fragment does not load the page again.
        self.client.goto("about:blank").await.unwrap();
        self.client.goto(&format!("{}{address}", self.base)).await.unwrap();
    }

    /// Sets the size of the window.
    pub(crate) async fn looks(&self, width: u32, height: u32) {
        self.client.set_window_size(width, height).await.unwrap();
    }

    /// Sets the colour scheme that the user prefers: `light` or `dark`.
    pub(crate) async fn prefers(&self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.devtools("Emulation.setEmulatedMedia", json!({"features": [feature]})).await;
    }

    /// Sends a command of the DevTools protocol, as chromedriver forwards them.
    async fn devtools(&self, command: &str, parameters: Value) {
        let session = self.client.session_id().await.unwrap().expect("the session is open");
        let body = json!({"cmd": command, "params": parameters}).to_string();
        let request = Ask::post(&format!("/session/{session}/goog/cdp/execute"), &body).text();
        let mut stream = TcpStream::connect(("127.0.0.1", self.driver)).await.unwrap();
        stream.write_all(&request).await.unwrap();
        // chromedriver does not close the connection, and the status is all that matters.
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK", "{command}");
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    pub(crate) async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// Waits until the page shows a text.
    pub(crate) async fn shows(&self, text: &str) {
        self.until_text(text, true).await;
    }

    /// Waits until the page no longer shows a text.
    pub(crate) async fn hides(&self, text: &str) {
        self.until_text(text, false).await;
    }

    async fn until_text(&self, text: &str, shown: bool) {
        let arguments = [json!(text), json!(shown)];
        self.until(text, async |page| {
            // There is no answer if the page is replaced by another one.
            let answer = page.client.execute_async(LOOK, arguments.to_vec()).await;
            answer.is_ok_and(|found| found == json!(true))
        })
        .await;
    }

    /// Waits for a condition; its failure prints the text of the page.
    pub(crate) async fn until(&self, what: &str, condition: impl AsyncFn(&Self) -> bool) {
        let start = Instant::now();
        let wait = async {
            while !condition(self).await {
                tokio::time::sleep(pause_after(start.elapsed())).await;
            }
        };
        if tokio::time::timeout(SOON, wait).await.is_err() {
            panic!("not within {SOON:?}: {what}; the page is:\n{}", self.text().await);
        }
    }

    /// Clicks the button or link with this name, which is its text or its label.
    pub(crate) async fn click(&self, name: &str) {
        let path = format!(
            "//*[self::button or self::a or self::input][@aria-label='{name}' or normalize-space()='{name}']"
        );
        // In the dialog if one is open.
        let open = self.client.find(Locator::Css("dialog[open]")).await;
        let found = match open {
            Ok(dialog) => dialog.find(Locator::XPath(&format!(".{path}"))).await,
            Err(_) => self.client.wait().at_most(SOON).for_element(Locator::XPath(&path)).await,
        };
        found.unwrap_or_else(|error| panic!("{name}: {error}")).click().await.unwrap();
    }

    /// Types into the field with this name.
    pub(crate) async fn fill(&self, field: &str, text: &str) {
        let css = format!("[name={field}]");
        let found = self.client.wait().at_most(SOON).for_element(Locator::Css(&css)).await.unwrap();
        found.clear().await.unwrap();
        found.send_keys(text).await.unwrap();
    }

    /// Whether the button with this text or label can be used.
    pub(crate) async fn is_enabled(&self, name: &str) -> bool {
        let path = format!("//button[@aria-label='{name}' or normalize-space()='{name}']");
        let found = self.client.wait().at_most(SOON).for_element(Locator::XPath(&path)).await.unwrap();
        found.is_enabled().await.unwrap()
    }

    /// Writes a screenshot to `target/console-screenshots`, which a CI keeps as an artefact.
    pub(crate) async fn screenshot(&self, name: &str) {
        let file = screenshot_file(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, self.client.screenshot().await.unwrap()).unwrap();
    }
}

fn screenshot_file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("console-screenshots");
    folder.join(format!("{name}.png"))
}
