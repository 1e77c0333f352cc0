//! Fetches debug information of programs by their build ids, from the servers that `DEBUGINFOD_URLS` names; off unless
//! it is set.
//!
//! What is fetched lies where elfutils keeps it (`~/.cache/debuginfod_client/BUILDID/debuginfo`), so that each file is
//! fetched once. An empty file there says that no server had it. Samples wait a little for a file; after that, the
//! fetch goes on for the next run.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::files::PartialFile;
use crate::names::shown;

/// How long samples wait for one file, and for all.
const PATIENCE: Duration = Duration::from_secs(10);
const WHOLE_PATIENCE: Duration = Duration::from_secs(30);

/// How long a server may say nothing, unless `DEBUGINFOD_TIMEOUT` says otherwise: as elfutils.
const SILENCE: Duration = Duration::from_secs(90);

/// How long it is believed that no server has a file, as elfutils does it.
const MISSING: Duration = Duration::from_secs(600);

/// A longer file isn't fetched, in bytes, unless `DEBUGINFOD_MAXSIZE` says otherwise.
const MOST_BYTES: u64 = 4 << 30;

/// What is written at once.
const CHUNK: usize = 256 << 10;

/// A client of debuginfod's servers.
#[derive(Clone, Debug)]
pub(super) struct Debuginfod {
    servers: Vec<String>,
    cache: PathBuf,
    silence: Duration,
    most_bytes: u64,
    /// How long samples may still wait.
    patience: Duration,
}

/// Why a file wasn't fetched.
#[derive(Debug)]
enum NotFetched {
    /// No server has it.
    Missing,
    /// A server had nothing but this error.
    Server(String),
    Cache(io::Error),
}

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no server has it"),
            Self::Server(error) => f.write_str(error),
            Self::Cache(error) => write!(f, "it can't be kept: {error}"),
        }
    }
}

/// What was fetched, from where.
struct FetchedFile {
    server: String,
    bytes: u64,
}

impl Debuginfod {
    /// The client that the environment asks for; `None` where it asks for none.
    pub(super) fn of_environment(cache: Option<&Path>) -> Option<Self> {
        let number = |name| env::var(name).ok().and_then(|text| text.trim().parse::<u64>().ok()).filter(|&n| n > 0);
        let servers = servers(&env::var("DEBUGINFOD_URLS").ok()?);
        (!servers.is_empty()).then_some(Self {
            servers,
            cache: cache?.to_owned(),
            silence: number("DEBUGINFOD_TIMEOUT").map_or(SILENCE, Duration::from_secs),
            most_bytes: number("DEBUGINFOD_MAXSIZE").unwrap_or(MOST_BYTES),
            patience: WHOLE_PATIENCE,
        })
    }

    /// Fetches the debug information of a build, and tells how that went; waits no longer than samples may.
    pub(super) fn fetch(&mut self, build: &[u8], path: &str, notes: &mut Vec<String>) {
        let build: String = build.iter().map(|byte| format!("{byte:02x}")).collect();
        let to = self.cache.join(&build).join("debuginfo");
        if build.len() < 4 || is_known(&to) {
            return;
        }
        let begun = Instant::now();
        let (done, result) = sync_channel(1);
        let client = self.clone();
        let fetch = move || drop(done.send(client.fetch_now(&build, &to)));
        if thread::Builder::new().name("perfprop-debuginfod".into()).spawn(fetch).is_err() {
            return;
        }
        let answer = result.recv_timeout(PATIENCE.min(self.patience));
        let took = begun.elapsed();
        self.patience = self.patience.saturating_sub(took);
        notes.push(note(path, answer, took));
    }

    /// Asks one server after the other.
    fn fetch_now(&self, build: &str, to: &Path) -> Result<FetchedFile, NotFetched> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(self.silence))
            .timeout_recv_body(Some(self.silence))
            .max_redirects(3)
            .build()
            .into();
        fs::create_dir_all(to.parent().unwrap_or(&self.cache)).map_err(NotFetched::Cache)?;
        let mut failed = NotFetched::Missing;
        for server in &self.servers {
            match agent.get(format!("{}/buildid/{build}/debuginfo", server.trim_end_matches('/'))).call() {
                Ok(response) => {
                    let body = response.into_body().into_reader();
                    let bytes = keep(body, to, self.most_bytes)?;
                    return Ok(FetchedFile { server: server.clone(), bytes });
                }
                Err(ureq::Error::StatusCode(404)) => {}
                Err(error) => failed = NotFetched::Server(format!("{server}: {error}")),
            }
        }
        if matches!(failed, NotFetched::Missing) {
            File::create(to).map_err(NotFetched::Cache)?;
        }
        Err(failed)
    }
}

/// The servers of a list; what is no address of one (such as rules for signatures) is left out.
fn servers(urls: &str) -> Vec<String> {
    let is_server = |url: &&str| url.starts_with("http://") || url.starts_with("https://");
    urls.split_whitespace().filter(is_server).map(str::to_owned).collect()
}

/// Whether the cache has the file, or knew a moment ago that no server has it.
fn is_known(path: &Path) -> bool {
    let Ok(about) = fs::metadata(path) else { return false };
    let age = about.modified().ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    about.len() > 0 || age.is_some_and(|age| age < MISSING)
}

/// Writes a file, which has its name once it is whole; gives its length.
fn keep(mut body: impl Read, to: &Path, most: u64) -> Result<u64, NotFetched> {
    let server = |error: io::Error| NotFetched::Server(error.to_string());
    // A server that had nothing before may have left an empty file.
    let mut part = PartialFile::create(to).map_err(NotFetched::Cache)?;
    let (mut bytes, mut chunk) = (0, vec![0; CHUNK]);
    loop {
        let count = body.read(&mut chunk).map_err(server)?;
        if count == 0 {
            part.put().map_err(NotFetched::Cache)?;
            return Ok(bytes);
        }
        bytes += count as u64;
        if bytes > most {
            return Err(NotFetched::Server(format!("it is longer than {most} bytes")));
        }
        part.write_all(&chunk[..count]).map_err(NotFetched::Cache)?;
    }
}

/// `debug information of /usr/bin/x: 12.3 MB from http://localhost:8002 in 0.4 s`.
fn note(path: &str, answer: Result<Result<FetchedFile, NotFetched>, RecvTimeoutError>, took: Duration) -> String {
    let path = shown(path);
    let seconds = took.as_secs_f64();
    match answer {
        Ok(Ok(FetchedFile { server, bytes })) => {
            let megabytes = bytes as f64 / 1e6;
            format!("debug information of {path}: {megabytes:.1} MB from {} in {seconds:.1} s", shown(&server))
        }
        Ok(Err(why)) => format!("no debug information of {path} from DEBUGINFOD_URLS: {}", shown(&why.to_string())),
        Err(_) => format!(
            "debug information of {path} is still on its way from DEBUGINFOD_URLS after {seconds:.0} s: the next run has it"
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::net::TcpListener;

    use super::*;

    #[test]
    fn servers_are_the_addresses_of_a_list() {
        let urls = "ima:enforcing https://a.example/ file:///x http://localhost:8002";
        assert_eq!(servers(urls), ["https://a.example/", "http://localhost:8002"]);
        assert!(servers("").is_empty());
    }

    /// A server that answers one request, with this status and body.
    fn serve(status: &'static str, body: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /buildid/0abc12/debuginfo "));
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).unwrap();
            stream.write_all(body).unwrap();
        });
        address
    }

    fn client(name: &str, server: String, most_bytes: u64) -> Debuginfod {
        let cache = env::temp_dir().join(format!("perfprop-debuginfod-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&cache);
        Debuginfod { servers: vec![server], cache, silence: SILENCE, most_bytes, patience: WHOLE_PATIENCE }
    }

    #[test]
    fn a_file_is_fetched_once_and_what_no_server_has_is_not_asked_for_again() {
        for (name, status, most, length, words) in [
            ("has", "200 OK", 100, Some(5), "debug information of /p: 0.0 MB from http://127.0.0.1"),
            ("long", "200 OK", 4, None, "no debug information of /p from DEBUGINFOD_URLS: it is longer than 4 bytes"),
            (
                "none",
                "404 Not Found",
                100,
                Some(0),
                "no debug information of /p from DEBUGINFOD_URLS: no server has it",
            ),
        ] {
            let mut client = client(name, serve(status, b"debug"), most);
            let mut notes = Vec::new();
            client.fetch(&[0x0a, 0xbc, 0x12], "/p", &mut notes);
            assert!(notes[0].starts_with(words), "{notes:?}");
            let file = client.cache.join("0abc12/debuginfo");
            assert_eq!(fs::metadata(&file).ok().map(|about| about.len()), length, "{name}");
            if length.is_some() {
                client.fetch(&[0x0a, 0xbc, 0x12], "/p", &mut notes);
                assert_eq!(notes.len(), 1);
            }
            fs::remove_dir_all(&client.cache).unwrap();
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_told() {
        let mut client = client("gone", "http://127.0.0.1:1".into(), 100);
        let mut notes = Vec::new();
        client.fetch(&[1, 2, 3], "/p\u{1b}", &mut notes);
        assert!(notes[0].contains("http://127.0.0.1:1: ") && !notes[0].contains('\u{1b}'), "{notes:?}");
        fs::remove_dir_all(&client.cache).unwrap();
    }
}
