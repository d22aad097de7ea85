//! A place is given back when its expert does not act.

use super::*;

/// eva has d-1 and lets it lie; finn has room.
fn lying() -> QueueStory {
    let mut story = story();
    hears_all(
        &mut story,
        [register("eva", 1, &[]), enqueue("d-1", USUAL, 1)],
    );
    hears_all(&mut story, [register("finn", 1, &[])]);
    assert_eq!(picture(&story), "eva d-1 | finn | -");
    story
}

#[test]
fn somebody_else_is_given_it_and_the_expert_has_room_for_others() {
    let mut story = lying();
    hears_all(&mut story, [give_back("d-1", "eva")]);
    assert_eq!(picture(&story), "eva | finn d-1 | -");
    hears_all(&mut story, [enqueue("d-2", USUAL, 2)]);
    assert_eq!(picture(&story), "eva d-2 | finn d-1 | -");
    // A second word about the same expert is out of date.
    let again = give_back("d-1", "eva");
    assert_eq!(
        story.hears(&said("m-again", 0), &again),
        "ignored: already_done"
    );
}

#[test]
fn it_stays_with_its_expert_while_nobody_else_can_take_it() {
    let stays = |story: &mut QueueStory| {
        let heard = story.hears(&said("m-back", 0), &give_back("d-1", "eva"));
        assert_eq!(heard, "ignored: already_done");
    };
    let mut full = lying();
    hears_all(&mut full, [enqueue("d-2", USUAL, 2)]);
    stays(&mut full);
    let mut unable = story();
    let of_tax = Enqueued {
        domain: Some("tax".into()),
        excluded: vec![agent("gil")],
        ..entry("d-1", USUAL, 1)
    };
    hears_all(
        &mut unable,
        [register("eva", 1, &["tax"]), enqueue_as(of_tax)],
    );
    hears_all(
        &mut unable,
        [register("finn", 1, &[]), register("gil", 1, &["tax"])],
    );
    stays(&mut unable);
}

#[test]
fn it_goes_from_one_to_the_next_and_to_nobody_twice() {
    let mut story = lying();
    hears_all(&mut story, [give_back("d-1", "eva")]);
    let heard = story.hears(&said("m-back", 0), &give_back("d-1", "finn"));
    assert_eq!(heard, "ignored: already_done", "eva has let it lie before");
    hears_all(
        &mut story,
        [register("gil", 1, &[]), give_back("d-1", "finn")],
    );
    assert_eq!(picture(&story), "eva | finn | gil d-1 | -");
    // When only those are left who have let it lie, one of them is given it all the same.
    hears_all(&mut story, [leave("gil")]);
    assert_eq!(picture(&story), "eva d-1 | finn | -");
}

#[test]
fn it_waits_at_its_old_place() {
    let mut story = lying();
    hears_all(&mut story, [enqueue("d-2", USUAL, 2)]);
    hears_all(&mut story, [enqueue("d-3", USUAL, 3)]);
    assert_eq!(picture(&story), "eva d-1 | finn d-2 | - d-3");
    story.hears(&said("m-gil", 0), &register("gil", 1, &[]));
    story.hears(&said("m-back", 0), &give_back("d-1", "eva"));
    assert_eq!(picture(&story), "eva | finn d-2 | gil | - d-1 d-3");
    advance(&mut story, &said("m-on", 0));
    assert_eq!(picture(&story), "eva d-3 | finn d-2 | gil d-1 | -");
}
