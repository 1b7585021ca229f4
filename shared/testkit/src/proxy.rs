//! A proxy between a client and a server that makes trouble by a plan: it delays, resets, loses replies of requests that were carried out, and answers
//! for a server of HTTP. It knows no protocol: what a client sends after the server has spoken begins a new exchange.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_model::IdSource as _;

use crate::SeededIds;

/// What happens to one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It goes through.
    None,
    /// It goes through, so many milliseconds late.
    Delay(u64),
    /// The connection is reset before the server has seen the request.
    Reset,
    /// The server carries the request out; its reply is lost, and the connection closed.
    LoseReply,
    /// The request is not passed on; the client is answered with this HTTP status.
    Status(u16),
    /// The server carries the request out; its reply is replaced by this HTTP status.
    StatusAfter(u16),
}

/// Which exchange meets which fault: the same for the same plan in every run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyPlan {
    /// No faults.
    Calm,
    /// Every exchange takes so many milliseconds longer.
    Slow(u64),
    /// Of a hundred exchanges so many meet one of these, by this seed.
    Random {
        /// The seed.
        seed: u64,
        /// How many of a hundred.
        percent: u64,
        /// The faults to choose from.
        faults: Vec<Fault>,
    },
}

impl ProxyPlan {
    /// What happens to the exchange of that number.
    #[must_use]
    pub fn fault(&self, number: u64) -> Fault {
        match self {
            Self::Calm => Fault::None,
            Self::Slow(ms) => Fault::Delay(*ms),
            Self::Random { seed, percent, faults } => {
                let draw = SeededIds::new(seed.wrapping_mul(1_000_003).wrapping_add(number)).next_u128();
                let (chance, choice) = (draw as u64, (draw >> 64) as u64);
                if chance % 100 < *percent { faults[(choice % faults.len() as u64) as usize] } else { Fault::None }
            }
        }
    }
}

struct Shared {
    target: SocketAddr,
    plan: Mutex<ProxyPlan>,
    exchanges: AtomicU64,
    faults: AtomicU64,
    closed: AtomicBool,
}

impl Shared {
    fn next(&self) -> Fault {
        let number = self.exchanges.fetch_add(1, Ordering::SeqCst);
        let fault = self.plan.lock().unwrap().fault(number);
        if fault != Fault::None {
            self.faults.fetch_add(1, Ordering::SeqCst);
        }
        fault
    }
}

/// A proxy that listens on loopback until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy in front of `target`, an address like `127.0.0.1:5432`.
    #[must_use]
    pub fn before(target: &str, plan: ProxyPlan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: target.parse().unwrap(),
            plan: Mutex::new(plan),
            exchanges: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.closed.load(Ordering::SeqCst) {
                    return;
                }
                connect(client, &accepting);
            }
        });
        Self { address, shared }
    }

    /// The proxy's own address.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Another plan from now on, counting from exchange 0.
    pub fn follow(&self, plan: ProxyPlan) {
        let mut current = self.shared.plan.lock().unwrap();
        *current = plan;
        self.shared.exchanges.store(0, Ordering::SeqCst);
        self.shared.faults.store(0, Ordering::SeqCst);
    }

    /// How many exchanges there were under the current plan.
    #[must_use]
    pub fn exchanges(&self) -> u64 {
        self.shared.exchanges.load(Ordering::SeqCst)
    }

    /// How many of them met a fault.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.shared.faults.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    /// The listener wakes up once more, to see that it is over.
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// One connection. Each direction has a thread, which ends with the connection.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    /// Whether the server has spoken since the client last did.
    spoke: AtomicBool,
    /// What becomes of the server's next words.
    pending: Mutex<Fault>,
}

fn connect(client: TcpStream, shared: &Arc<Shared>) {
    let Ok(server) = TcpStream::connect(shared.target) else {
        let _ = client.shutdown(Shutdown::Both);
        return;
    };
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let pair = Arc::new(Pair { client, server, spoke: AtomicBool::new(true), pending: Mutex::new(Fault::None) });
    let (requests, replies, shared) = (Arc::clone(&pair), pair, Arc::clone(shared));
    std::thread::spawn(move || {
        requests.pass_requests(&shared);
        requests.close();
    });
    std::thread::spawn(move || {
        replies.pass_replies();
        replies.close();
    });
}

impl Pair {
    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// Until the connection ends, or a fault ends it.
    fn pass_requests(&self, shared: &Shared) {
        let (mut client, mut server) = (&self.client, &self.server);
        let mut buffer = vec![0; 1 << 16];
        loop {
            match client.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    if self.spoke.swap(false, Ordering::SeqCst) && !self.begin(shared.next()) {
                        return;
                    }
                    if server.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Begins an exchange. Whether the request is passed on.
    fn begin(&self, fault: Fault) -> bool {
        match fault {
            Fault::None => true,
            Fault::Delay(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                true
            }
            Fault::Reset => false,
            Fault::Status(code) => {
                self.answer(code);
                false
            }
            Fault::LoseReply | Fault::StatusAfter(_) => {
                *self.pending.lock().unwrap() = fault;
                true
            }
        }
    }

    fn pass_replies(&self) {
        let (mut client, mut server) = (&self.client, &self.server);
        let mut buffer = vec![0; 1 << 16];
        loop {
            match server.read(&mut buffer) {
                Ok(0) => return,
                Ok(length) => {
                    match *self.pending.lock().unwrap() {
                        Fault::LoseReply => return,
                        Fault::StatusAfter(code) => return self.answer(code),
                        Fault::None | Fault::Delay(_) | Fault::Reset | Fault::Status(_) => {}
                    }
                    self.spoke.store(true, Ordering::SeqCst);
                    if client.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Answers the client for the server. What it is still sending is read for a moment, or the reset would overtake the answer.
    fn answer(&self, code: u16) {
        let mut client = &self.client;
        let head = format!("HTTP/1.1 {code} Planned\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let _ = client.write_all(head.as_bytes());
        let _ = client.shutdown(Shutdown::Write);
        let _ = client.set_read_timeout(Some(Duration::from_millis(50)));
        let mut rest = [0; 1 << 12];
        while matches!(client.read(&mut rest), Ok(length) if length > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each line with how many it has had, and the number it has at the end.
    fn counter() -> (String, Arc<AtomicU64>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, count) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || {
                    let mut byte = [0; 64];
                    while matches!(stream.read(&mut byte), Ok(length) if length > 0) {
                        counted.fetch_add(1, Ordering::SeqCst);
                        if stream.write_all(b"ok").is_err() {
                            return;
                        }
                    }
                });
            }
        });
        (address, count)
    }

    fn ask(stream: &mut TcpStream) -> std::io::Result<String> {
        stream.write_all(b"request")?;
        let mut buffer = [0; 256];
        match stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            length => Ok(String::from_utf8_lossy(&buffer[..length]).into_owned()),
        }
    }

    fn always(fault: Fault) -> ProxyPlan {
        ProxyPlan::Random { seed: 1, percent: 100, faults: vec![fault] }
    }

    #[test]
    fn each_fault_does_what_it_says() {
        let (address, count) = counter();
        let proxy = Proxy::before(&address, ProxyPlan::Calm);
        let mut open = TcpStream::connect(proxy.address()).unwrap();
        assert_eq!((ask(&mut open).unwrap().as_str(), ask(&mut open).unwrap().as_str()), ("ok", "ok"));
        assert_eq!((proxy.exchanges(), proxy.faults(), count.load(Ordering::SeqCst)), (2, 0, 2));
        for (fault, acted, status) in [
            (Fault::Reset, 0, None),
            (Fault::LoseReply, 1, None),
            (Fault::Status(503), 0, Some("HTTP/1.1 503")),
            (Fault::StatusAfter(500), 1, Some("HTTP/1.1 500")),
            (Fault::Delay(1), 1, Some("ok")),
        ] {
            proxy.follow(always(fault));
            let before = count.load(Ordering::SeqCst);
            let answer = ask(&mut TcpStream::connect(proxy.address()).unwrap()).ok();
            assert_eq!(count.load(Ordering::SeqCst) - before, acted, "{fault:?}");
            assert_eq!(answer.as_deref().map(|text| &text[..text.len().min(12)]), status, "{fault:?}");
            assert_eq!(proxy.faults(), 1, "{fault:?}");
        }
    }

    #[test]
    fn a_plan_is_the_same_in_every_run() {
        let plan = |seed| ProxyPlan::Random { seed, percent: 20, faults: vec![Fault::Reset, Fault::LoseReply] };
        let drawn = |seed| (0..1_000).map(|number| plan(seed).fault(number)).collect::<Vec<_>>();
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let met = drawn(7).iter().filter(|fault| **fault != Fault::None).count();
        assert!((150..250).contains(&met), "{met}");
    }
}
