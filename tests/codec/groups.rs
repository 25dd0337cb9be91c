//! Members, joins and sub-jobs with a codec that accepts no plain payloads.

use bellwether::client::MemberEnd;
use bellwether::{Client, Handlers, JobKind, JoinKind, ParentKind};

use crate::cipher::Keys;
use crate::stage::{Records, SOON, client, cluster, keys};

struct Word;

impl JobKind for Word {
    const NAME: &'static str = "word";
    type Payload = String;
    type Result = String;
}

impl JoinKind for Word {
    type Joined = String;
}

struct Text;

impl JobKind for Text {
    const NAME: &'static str = "text";
    type Payload = Vec<String>;
    type Result = usize;
}

impl ParentKind for Text {
    type SubJob = Word;
    type Finished = String;
}

fn handlers() -> Handlers {
    Handlers::new()
        .kind::<Word>(|_, word| async move { Ok(word.to_uppercase()) })
        .join::<Word>(|_, mut words| async move {
            let mut all = Vec::new();
            while let Some(word) = words.next().await? {
                all.push(word.into_result()?);
            }
            Ok(all.join(" "))
        })
        .kind::<Text>(|job, words| async move {
            let group = job.sub_jobs::<Word>().finished(true).open().await?;
            for (number, word) in (0..).zip(&words) {
                group.submit(number, Word::job(word)).await?;
            }
            Ok(words.len())
        })
        .finished::<Text>(|_, finished| async move {
            let joined = finished.join_result()?.unwrap_or_default();
            Ok(format!("{} words: {joined}", finished.parent_result()?))
        })
}

#[tokio::test]
async fn a_join_reads_plain_results_and_its_own_result_is_encoded() {
    let cluster = cluster(handlers()).await;
    let client: Client = client(&cluster, keys()).await;
    let group = client.group(Word::group("two").total(2)).await.unwrap();
    let words = ["a", "b"].map(|word| Word::job(&word.to_owned()));
    assert_eq!(group.submit_all(words.clone()).await.unwrap(), 2);
    assert_eq!(group.join_result(SOON).await.unwrap(), "A B");
    // The same members again.
    assert_eq!(group.submit_all(words).await.unwrap(), 2);

    let records = Records::of(&cluster).await;
    assert!(records.read("word:two:0").await.payload.content_type().as_str().ends_with("encoded"));
    assert_eq!(records.read("word.join:@two").await.payload.content_type().as_str(), "application/json");
    let without = cluster.client().group_members::<Word>(group.id()).next().await.unwrap().unwrap();
    assert_eq!(without.end, MemberEnd::Undecodable("it is encoded, and the client has no codec".to_owned()));
    let wrong = crate::stage::client(&cluster, Keys::new(1, [9; 32])).await;
    let wrong = wrong.group_members::<Word>(group.id()).next().await.unwrap().unwrap();
    assert!(matches!(&wrong.end, MemberEnd::Undecodable(why) if why.contains("it was changed")), "{wrong:?}");
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn sub_jobs_and_the_finished_handler_see_plain_payloads_and_results() {
    let cluster = cluster(handlers()).await;
    let client = client(&cluster, keys()).await;
    let words = ["a", "b", "c"].map(str::to_owned).to_vec();
    let text = client.submit(Text::job(&words).id("t")).await.unwrap();
    assert_eq!(text.finished_result(SOON).await.unwrap(), "3 words: A B C");
    cluster.stop().await.unwrap();
}
