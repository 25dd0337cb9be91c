//! Four-letter words, as parsed by kazoo, exporters and scripts.

use std::time::Duration;

use bellwether_keeper::server::Compat;
use bellwether_keeper::server::{Keeper, Storage};

use crate::wire::*;

fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key:?} in {text}"))
}

#[tokio::test]
async fn ruok_and_isro_are_answered() {
    let keeper = keeper().await;
    assert_eq!(word(keeper.address(), "ruok").await, "imok");
    assert_eq!(word(keeper.address(), "isro").await, "rw");
}

#[tokio::test]
async fn a_newline_after_a_word_is_ignored() {
    let keeper = keeper().await;
    assert_eq!(word(keeper.address(), "ruok\n").await, "imok");
}

#[tokio::test]
async fn an_unknown_word_closes_the_connection() {
    let keeper = keeper().await;
    for unknown in ["zzzz", "GET ", "RUOK"] {
        assert_eq!(word(keeper.address(), unknown).await, "", "{unknown}");
    }
}

#[tokio::test]
async fn srvr_has_counters_and_states_the_missing_failover() {
    let keeper = Keeper::builder().compat(Compat::V3_8_0).start().await.expect("a keeper");
    let (mut wire, _) = Wire::session(keeper.address()).await;
    assert_eq!(wire.call(1, CREATE, &create("/a", b"x", PERSISTENT)).await.error, 0);
    let text = word(keeper.address(), "srvr").await;
    assert!(value(&text, "Zookeeper version: ").starts_with("3.8.0-"), "{text}");
    assert_eq!(value(&text, "Mode: "), "standalone");
    assert_eq!(value(&text, "Zxid: "), "0x2");
    assert_eq!(value(&text, "Received: "), "2");
    assert_eq!(value(&text, "Sent: "), "2");
    assert_eq!(value(&text, "Outstanding: "), "0");
    assert_eq!(value(&text, "Failover: "), "none (single node, no failover)");
    assert_eq!(value(&text, "Latency min/avg/max: ").split('/').count(), 3);

    assert_eq!(word(keeper.address(), "srst").await, "Server stats reset.\n");
    let text = word(keeper.address(), "srvr").await;
    assert_eq!(value(&text, "Received: "), "0");
}

#[tokio::test]
async fn mntr_has_a_key_and_a_tab_and_a_value_on_every_line() {
    let keeper = keeper().await;
    let (mut wire, _) = Wire::session(keeper.address()).await;
    assert_eq!(wire.call(1, CREATE, &create("/e", b"x", EPHEMERAL)).await.error, 0);
    assert_eq!(wire.call(2, GET_DATA, &read("/e", true)).await.error, 0);
    let text = word(keeper.address(), "mntr").await;
    for line in text.lines() {
        let (key, value) = line.split_once('\t').unwrap_or_else(|| panic!("no tab in {line:?}"));
        assert!(key.starts_with("zk_") && !value.is_empty(), "{line:?}");
    }
    assert_eq!(value(&text, "zk_server_state\t"), "standalone");
    for (key, number) in [
        ("zk_ephemerals_count", 1),
        ("zk_watch_count", 1),
        ("zk_global_sessions", 1),
        ("zk_outstanding_requests", 0),
        ("zk_packets_received", 3),
    ] {
        assert_eq!(monitored(keeper.address(), key).await, number, "{key}");
    }
    assert!(monitored(keeper.address(), "zk_num_alive_connections").await >= 1);
}

#[tokio::test]
async fn cons_dump_and_wch_list_connections_znodes_and_watches() {
    let keeper = keeper().await;
    let (mut wire, session) = Wire::session(keeper.address()).await;
    assert_eq!(wire.call(7, CREATE, &create("/e", b"x", EPHEMERAL)).await.error, 0);
    assert_eq!(wire.call(8, GET_DATA, &read("/e", true)).await.error, 0);
    let id = format!("{:#x}", session.id);
    let peer = wire.stream.local_addr().expect("an address");

    let cons = word(keeper.address(), "cons").await;
    assert!(
        cons.starts_with(&format!(" /{peer}[1](queued=0,recved=3,sent=3,sid={id},lop=GETD,est=")),
        "{cons}"
    );
    assert!(cons.contains(",to=10000,lcxid=0x8,lzxid=0x2,lresp="), "{cons}");
    assert!(
        word(keeper.address(), "stat").await.contains(&format!(" /{peer}[1](queued=0,recved=3,sent=3)\n"))
    );

    let dump = word(keeper.address(), "dump").await;
    assert!(dump.starts_with("SessionTracker dump:\nSession Sets (1)/(1):\n1 expire at "), "{dump}");
    assert!(dump.contains(&format!("Sessions with Ephemerals (1):\n{id}:\n\t/e\n")), "{dump}");

    assert_eq!(word(keeper.address(), "wchs").await, "1 connections watching 1 paths\nTotal watches:1\n");
    assert_eq!(word(keeper.address(), "wchc").await, format!("{id}\n\t/e\n\n"));
    assert_eq!(word(keeper.address(), "wchp").await, format!("/e\n\t{id}\n\n"));

    assert_eq!(word(keeper.address(), "crst").await, "Connection stats reset.\n");
    assert!(word(keeper.address(), "cons").await.contains("recved=0,sent=0"));
}

#[tokio::test]
async fn conf_and_envi_have_a_key_and_a_value_on_every_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let storage = Storage::Directory(directory.path().to_owned());
    let keeper = Keeper::builder()
        .store(storage)
        .tick_time(Duration::from_millis(500))
        .start()
        .await
        .expect("a keeper");
    let conf = word(keeper.address(), "conf").await;
    assert_eq!(value(&conf, "clientPort="), keeper.address().port().to_string());
    assert_eq!(value(&conf, "dataDir="), directory.path().display().to_string());
    assert_eq!(value(&conf, "tickTime="), "500");
    assert_eq!(value(&conf, "minSessionTimeout="), "1000");
    assert_eq!(value(&conf, "maxSessionTimeout="), "10000");
    assert_eq!(value(&conf, "failover="), "none (single node, no failover)");
    let envi = word(keeper.address(), "envi").await;
    assert!(value(&envi, "zookeeper.version=").starts_with("3.9"), "{envi}");
    for line in conf.lines().chain(envi.lines().skip(1)) {
        assert!(line.contains('='), "{line:?}");
    }
}
