//! Limits for clients of `[serve]`, and their messages.

use std::fmt::Write;
use std::io::Write as _;
use std::net::Shutdown;

use redis::Commands;

use super::{Served, Socket, packed, peak, urls};
use crate::util::wait::{SOON, wait_until};

#[track_caller]
fn says(socket: &mut Socket, bytes: impl AsRef<[u8]>, expected: &str) {
    socket.send(bytes);
    assert_eq!(socket.receive(expected), expected);
}

#[test]
fn an_invalid_command_gets_an_error_and_the_connection_ends() {
    let served = Served::new("demo").set("serve.request_bytes=2000");
    let running = served.start();
    // The client sends the whole command before it reads the error.
    let long = packed(&["SADD", "demo", &"x".repeat(20_000_000)]);
    let endless = vec![b'x'; 3000];
    let nested = "*1\r\n".repeat(400);
    for (bytes, said) in [
        (&b"*1\r\n:5\r\n"[..], "expected '$', got ':'"),
        (b"*2000000\r\n", "invalid multibulk length"),
        (&long, "invalid bulk length"),
        (&endless, "too big inline request"),
        (nested.as_bytes(), "expected '$', got '*'"),
        (b"SADD demo \"a\r\n", "unbalanced quotes in request"),
    ] {
        let mut socket = running.socket();
        socket.send("PING\r\n");
        socket.send(bytes);
        assert_eq!(socket.rest(), format!("+PONG\r\n-ERR Protocol error: {said}\r\n"));
    }
    let mut socket = running.socket();
    socket.send("PING\r\nQUIT\r\nPING\r\n");
    assert_eq!(socket.rest(), "+PONG\r\n+OK\r\n");
}

#[test]
fn a_client_without_the_password_may_only_log_in() {
    let mut served = Served::new("demo");
    served.password = Some("a-secret-word");
    let running = served.start();
    let mut socket = running.socket();
    for command in ["PING", "SADD demo a", "SCARD demo", "INFO", "COMMAND"] {
        says(&mut socket, format!("{command}\r\n"), "-NOAUTH Authentication required.\r\n");
    }
    says(&mut socket, "HELLO 3\r\n", "-NOAUTH HELLO must be called with the client already");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    let mut socket = running.socket();
    says(&mut socket, "AUTH a-secret-wor\r\n", wrong);
    says(&mut socket, "AUTH root a-secret-word\r\n", wrong);
    says(&mut socket, "AUTH a-secret-word\r\n", "+OK\r\n");
    says(&mut socket, "SADD demo a\r\n", ":1\r\n");
    let mut socket = running.socket();
    says(&mut socket, "HELLO 3 AUTH default a-secret-word SETNAME me\r\n", "%7\r\n$6\r\nserver");
    // A client without the password cannot fill the daemon's memory.
    let mut socket = running.socket();
    socket.send(packed(&["AUTH", &"x".repeat(20_000)]));
    assert_eq!(socket.rest(), "-ERR Protocol error: invalid bulk length\r\n");
    assert!(!running.daemon.stderr().contains("secret"), "{}", running.daemon.stderr());
}

#[test]
fn the_number_of_clients_is_bounded() {
    let served = Served::new("demo").set("serve.max_clients=2");
    let running = served.start();
    let (mut first, mut second) = (running.socket(), running.socket());
    says(&mut first, "PING\r\n", "+PONG\r\n");
    says(&mut second, "PING\r\n", "+PONG\r\n");
    assert_eq!(running.socket().rest(), "-ERR max number of clients reached\r\n");
    drop(first);
    wait_until(SOON, "place", || {
        let mut third = running.socket();
        third.send("PING\r\nQUIT\r\n");
        third.rest() == "+PONG\r\n+OK\r\n"
    });
    says(&mut second, "PING\r\n", "+PONG\r\n");
}

#[test]
fn many_commands_at_once_are_answered_in_order() {
    let served = Served::new("demo");
    let running = served.start();
    let mut socket = running.socket();
    let (mut bytes, mut expected) = (Vec::new(), String::new());
    for number in 0..20_000 {
        let member = format!("https://example.com/{}", number % 7000);
        bytes.extend(packed(&["SADD", "demo", &member]));
        expected += if number < 7000 { ":1\r\n" } else { ":0\r\n" };
        if number % 1000 == 0 {
            bytes.extend(packed(&["SCARD", "demo"]));
            write!(expected, ":{}\r\n", 7000.min(number + 1)).unwrap();
        }
    }
    let mut writer = Socket(socket.0.try_clone().unwrap());
    let writing = std::thread::spawn(move || writer.send(bytes));
    assert!(socket.receive(&expected) == expected);
    writing.join().unwrap();
}

#[test]
fn commands_of_redisbloom_at_once_count_like_single_ones() {
    let served = Served::new("demo").set("filter.kind=redisbloom").set("filter.expansion=0");
    let served = served.set("filter.capacity=1000").set("filter.error_rate=0.1");
    let mut running = served.start();
    let mut client = running.connection();
    let size = |client: &mut redis::Connection| {
        redis::cmd("BF.INFO").arg("demo").arg("SIZE").query::<Vec<u64>>(client).unwrap()[0]
    };
    let empty = size(&mut client);
    assert!(empty > 500, "{empty}");
    let all = urls(0..1500);
    let new: Vec<bool> =
        redis::cmd("BF.MADD").arg("demo").arg(&all[..800]).query(&mut client).unwrap();
    let mut new = new.into_iter().filter(|&is_new| is_new).count();
    // Some items count as seen, because other items of the same command have set their bits.
    let card = |client: &mut redis::Connection| {
        redis::cmd("BF.CARD").arg("demo").query::<usize>(client).unwrap()
    };
    assert!((700..800).contains(&new) && card(&mut client) == new, "{new}");
    let mut pipe = redis::pipe();
    for item in &all[800..] {
        pipe.cmd("BF.ADD").arg("demo").arg(item);
    }
    let replies: Vec<redis::RedisResult<bool>> = pipe.ignore_errors().query(&mut client).unwrap();
    new += replies.iter().filter(|reply| matches!(reply, Ok(true))).count();
    assert!(replies.iter().any(Result::is_err) && size(&mut client) == empty);
    assert_eq!([new, card(&mut client)], [1000, 1000]);
    running.daemon.signal(rustix::process::Signal::KILL);
    running.daemon.wait(SOON);
    assert_eq!(card(&mut served.start().connection()), 1000);
}

#[test]
fn a_reservation_that_redisbloom_refuses_is_refused() {
    let served = Served::new("demo");
    let running = served.start();
    // The tests of redis-py read these fields before they send any command of a filter.
    let info: redis::InfoDict = redis::cmd("INFO").query(&mut running.connection()).unwrap();
    assert_eq!(["arch_bits", "cluster_enabled"].map(|it| info.get(it)), [Some(64), Some(0)]);
    let mut socket = running.socket();
    for (options, said) in [
        ("1000 NONSCALING EXPANSION 2", "Nonscaling filters cannot expand"),
        ("1000 EXPANSION 2 NONSCALING", "Nonscaling filters cannot expand"),
        ("1000 a b c d", "ERR wrong number of arguments for 'bf.reserve' command"),
        ("+1000", "ERR bad capacity"),
        ("01000", "ERR bad capacity"),
        ("1000 EXPANSION +2", "ERR bad expansion"),
        ("1000 a b c", "ERR item exists"),
    ] {
        says(&mut socket, format!("BF.RESERVE demo 0.01 {options}\r\n"), &format!("-{said}\r\n"));
    }
}

#[test]
fn a_client_that_never_reads_makes_the_daemon_keep_little() {
    const CLIENTS: usize = 16;
    let served = Served::new("demo");
    let running = served.start();
    // This command nearly has the largest permitted size. So the daemon can receive many bytes at
    // once after it.
    let large = packed(&["ECHO", &"x".repeat(1_000_000)]);
    let (most, rest) = large.split_at(large.len() - 1000);
    let flood = [rest, &b"COMMAND\r\n".repeat(90_000)].concat();
    let mut sockets: Vec<Socket> = (0..CLIENTS).map(|_| running.socket()).collect();
    for socket in &mut sockets {
        socket.send(most);
        let mut writer = Socket(socket.0.try_clone().unwrap());
        let flood = flood.clone();
        // This thread ends when the socket is shut down.
        std::thread::spawn(move || writer.0.write_all(&flood));
    }
    for socket in &mut sockets {
        assert_eq!(socket.receive("$1000000\r\n"), "$1000000\r\n");
    }
    let peak = peak(&running);
    for socket in sockets {
        socket.0.shutdown(Shutdown::Both).unwrap();
    }
    assert!(peak < 32 + CLIENTS as u64 * 6, "{peak} MiB");
}

#[test]
fn a_filter_is_emptied_only_if_allowed() {
    let all = urls(0..100);
    let refusing = Served::new("demo");
    let running = refusing.start();
    let mut client = running.connection();
    let _: u64 = client.sadd("demo", &all).unwrap();
    let refused = client.del::<_, u64>("demo").unwrap_err().to_string();
    assert!(refused.contains("serve.allow_delete"), "{refused}");
    assert_eq!(client.scard::<_, u64>("demo").unwrap(), 100);

    for kind in ["native", "redisbloom"] {
        let allowing =
            Served::new("demo").set("serve.allow_delete=true").set(&format!("filter.kind={kind}"));
        let mut running = allowing.start();
        let mut client = running.connection();
        let _: u64 = client.sadd("demo", &all).unwrap();
        assert_eq!(client.del::<_, u64>("demo").unwrap(), 1);
        assert_eq!(client.scard::<_, u64>("demo").unwrap(), 0);
        assert_eq!(client.sadd::<_, _, u64>("demo", &all[..10]).unwrap(), 10);
        running.daemon.signal(rustix::process::Signal::KILL);
        running.daemon.wait(SOON);
        let running = allowing.start();
        assert_eq!(running.connection().scard::<_, u64>("demo").unwrap(), 10, "{kind}");
    }
}

#[test]
fn a_full_filter_is_reported_and_still_answers() {
    let served = Served::new("demo").set("filter.kind=native");
    let served = served.set("filter.capacity=1000").set("filter.when_full=stop");
    let running = served.start();
    let mut client = running.connection();
    assert_eq!(client.sadd::<_, _, u64>("demo", urls(0..1000)).unwrap(), 1000);
    let mut more = 0;
    wait_until(SOON, "refusal", || {
        more += 1;
        let member = format!("one more {more}");
        let said = redis::cmd("BF.ADD").arg("demo").arg(member).query::<bool>(&mut client);
        said.is_err_and(|error| format!("{error:?}").contains("non scaling filter is full"))
    });
    assert_eq!(client.sadd::<_, _, u64>("demo", urls(0..1000)).unwrap(), 0);
}

#[test]
fn a_port_in_use_and_a_drain_with_clients_are_refused() {
    let served = Served::new("demo");
    let running = served.start();
    let processing = Served::new("demo").set(&format!("serve.listen=127.0.0.1:{}", running.port));
    let output = processing.run().output();
    assert_eq!(output.code(), Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("cannot listen at serve.listen"), "{}", output.stderr);
    assert_eq!(served.run().arg("--drain").output().code(), Some(2));
}

#[test]
fn a_transaction_is_answered_as_one() {
    let served = Served::new("demo").set("serve.request_bytes=1024");
    let running = served.start();
    let mut socket = running.socket();
    says(
        &mut socket,
        "MULTI\r\nSADD demo a b\r\nSCARD demo\r\nSADD demo b c\r\nEXEC\r\nSCARD demo\r\n",
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:2\r\n:2\r\n:1\r\n:3\r\n",
    );
    says(&mut socket, "MULTI\r\nMULTI\r\n", "+OK\r\n-ERR MULTI calls can not be nested\r\n");
    says(&mut socket, "SADD demo d\r\nDISCARD\r\n", "+QUEUED\r\n+OK\r\n");
    says(&mut socket, "EXEC\r\nDISCARD\r\n", "-ERR EXEC without MULTI\r\n-ERR DISCARD without ");
    let mut socket = running.socket();
    let refused = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    says(
        &mut socket,
        "MULTI\r\nSADD demo e\r\nSADD demo\r\n",
        "+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'sadd' command\r\n",
    );
    says(&mut socket, "EXEC\r\n", refused);
    says(&mut socket, "MULTI\r\nSADD other e\r\nEXEC\r\n", "+OK\r\n-NOPERM urlseen answers");
    let mut socket = running.socket();
    let long = "x".repeat(600);
    socket.send(format!("MULTI\r\nSADD demo {long}\r\nSADD demo {long}\r\nEXEC\r\n"));
    socket.send("SMISMEMBER demo a d e\r\nQUIT\r\n");
    let said = socket.rest();
    assert!(said.starts_with("+OK\r\n+QUEUED\r\n-ERR the transaction has more than"), "{said}");
    assert!(said.ends_with(&format!("{refused}*3\r\n:1\r\n:0\r\n:0\r\n+OK\r\n")), "{said}");
}
