//! Every behaviour of lanes, of external tasks and of sessions, as a script and what must come of it.
//!
//! A file in `scenarios/` says in words what must be true, then comes the script, a line `---`, and the whole
//! output. With `UPDATE=1` in the environment the test writes the outputs again; check the difference.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use laneway_scenario::{Line, play, play_with_restarts};

macro_rules! scenarios {
    ($($name:ident $file:literal)*) => {
        $(#[test] fn $name() { check($file); })*

        const FILES: &[&str] = &[$($file),*];
    };
}

scenarios! {
    four_run_six_wait "01-four-run-six-wait"
    the_last_end_is_told "02-the-last-end-is-told"
    urgent_sources_first "03-urgent-sources-first"
    the_31st_is_refused "04-the-31st-is-refused"
    a_flood_cannot_starve_it "05-a-flood-cannot-starve-it"
    a_new_priority_starts_over "05-a-new-priority-starts-over"
    ageing_stops_at_the_highest_that_waits "05-ageing-stops-at-the-highest-that-waits"
    background_ages "05-background-ages"
    boosted_work_starves_nobody "05-boosted-work-starves-nobody"
    all_free_slots_at_once "06-all-free-slots-at-once"
    a_nonsense_limit_is_refused "07-a-nonsense-limit-is-refused"
    limits_change_while_work_runs "07-limits-change-while-work-runs"
    one_conversation_from_three_sides "08-one-conversation-from-three-sides"
    one_turn_of_a_conversation_at_a_time "08-one-turn-of-a-conversation-at-a-time"
    a_conversation_that_was_served_waits_for_the_others "09-a-conversation-that-was-served-waits-for-the-others"
    a_retry_gives_its_turn_back "09-a-retry-gives-its-turn-back"
    equal_lanes_take_turns "09-equal-lanes-take-turns"
    turns_by_weight "09-turns-by-weight"
    a_busy_provider_holds_up_nobody_else "10-a-busy-provider-holds-up-nobody-else"
    cancel_all_that_waits "11-cancel-all-that-waits"
    ten_thousand_in_one_call "11-ten-thousand-in-one-call"
    the_second_of_three "11-the-second-of-three"
    cancel_and_grant_have_one_outcome "12-cancel-and-grant-have-one-outcome"
    clear_answers_how_many "13-clear-answers-how-many"
    a_released_run_comes_back_late "14-a-released-run-comes-back-late"
    ending_twice_frees_nothing "15-ending-twice-frees-nothing"
    a_delay_is_no_waiting "16-a-delay-is-no-waiting"
    a_retry_waits_anew "16-a-retry-waits-anew"
    a_waiter_gives_up "16-a-waiter-gives-up"
    who_is_held_does_not_wait_yet "16-who-is-held-does-not-wait-yet"
    a_panic_frees_its_slot "17-a-panic-frees-its-slot"
    a_changed_rate_keeps_what_is_owed "18-a-changed-rate-keeps-what-is-owed"
    the_whole_burst_after_a_rest "18-the-whole-burst-after-a-rest"
    unlimited_is_really_none "18-unlimited-is-really-none"
    a_fixed_delay_has_no_cap "19-a-fixed-delay-has-no-cap"
    a_retried_task_keeps_its_place "19-a-retried-task-keeps-its-place"
    delays_double_up_to_the_cap "19-delays-double-up-to-the-cap"
    retries_after_none "19-retries-after-none"
    the_third_attempt_succeeds "19-the-third-attempt-succeeds"
    a_dead_letter_can_be_redriven "20-a-dead-letter-can-be-redriven"
    the_oldest_letter_goes_first "20-the-oldest-letter-goes-first"
    pressure_once_and_idle_once "21-pressure-once-and-idle-once"
    counters_count "22-counters-count"
    sessions_leave_nothing_behind "24-sessions-leave-nothing-behind"
    a_chain_of_nine_is_refused "25-a-chain-of-nine-is-refused"
    a_child_borrows_its_parent_s_slot "25-a-child-borrows-its-parent-s-slot"
    a_child_that_waits_for_its_parent "25-a-child-that-waits-for-its-parent"
    a_detached_child_starts_a_new_chain "25-a-detached-child-starts-a-new-chain"
    a_kept_slot_blocks_no_child "25-a-kept-slot-blocks-no-child"
    around_two_lanes_and_back "25-around-two-lanes-and-back"
    parents_that_wait_for_each_other "25-parents-that-wait-for-each-other"
    a_notice_while_waiting "26-a-notice-while-waiting"
    who_waits_again_is_noticed_again "26-who-waits-again-is-noticed-again"
    names_of_lanes "27-names-of-lanes"
    a_batch_is_taken_whole_or_not_at_all "28-a-batch-is-taken-whole-or-not-at-all"
    a_tool_batch "28-a-tool-batch"
    lanes_of_tools "28-lanes-of-tools"
    priorities_of_tools "28-priorities-of-tools"
    the_pending_list_is_the_line "29-the-pending-list-is-the-line"
    two_workers_never_get_the_same "29-two-workers-never-get-the-same"
    a_heartbeat_in_time "30-a-heartbeat-in-time"
    a_retry_is_no_redelivery "30-a-retry-is-no-redelivery"
    a_silent_worker_loses_its_lease "30-a-silent-worker-loses-its-lease"
    unclaimed_or_unfinished_ends "31-unclaimed-or-unfinished-ends"
    a_second_completion_is_refused "32-a-second-completion-is-refused"
    hybrid_runs_here "33-hybrid-runs-here"
    a_task_s_own_timeout "34-a-task-s-own-timeout"
    heartbeats_keep_a_long_run "34-heartbeats-keep-a-long-run"
    idle_starts_at_once "35-idle-starts-at-once"
    followups_are_turns_of_their_own "36-followups-are-turns-of-their-own"
    collected_messages_are_one_turn "37-collected-messages-are-one-turn"
    permissions_are_kept_apart "38-permissions-are-kept-apart"
    places_are_answered_apart "38-places-are-answered-apart"
    a_backlogged_message_is_tried_again_once "39-a-backlogged-message-is-tried-again-once"
    a_new_attempt_takes_them_again "39-a-new-attempt-takes-them-again"
    a_steered_message_goes_into_the_running_turn "39-a-steered-message-goes-into-the-running-turn"
    a_steered_turn_skips_its_tool_calls "39-a-steered-turn-skips-its-tool-calls"
    a_summary_is_steered_by_its_own "39-a-summary-is-steered-by-its-own"
    nobody_steers_a_turn_of_others "39-nobody-steers-a-turn-of-others"
    steer_backlog_does_both "39-steer-backlog-does-both"
    steer_backlog_keeps_to_the_cap "39-steer-backlog-keeps-to-the-cap"
    steer_may_name_the_turn "39-steer-may-name-the-turn"
    steering_stays_on_offer "39-steering-stays-on-offer"
    steers_that_come_too_late_keep_their_order "39-steers-that-come-too-late-keep-their-order"
    interrupt "40-interrupt"
    queue_is_steer_reject_and_latest "40-queue-is-steer-reject-and-latest"
    debounce_and_its_bound "41-debounce-and-its-bound"
    each_waits_no_longer_than_its_own_bound "41-each-waits-no-longer-than-its-own-bound"
    two_conversations_are_quiet_at_once "41-two-conversations-are-quiet-at-once"
    old_and_new "42-old-and-new"
    overflow_is_summarized "42-overflow-is-summarized"
    a_failing_summary_comes_to_an_end "43-a-failing-summary-comes-to-an-end"
    a_summary_that_failed_tells_of_newer_ones_too "43-a-summary-that-failed-tells-of-newer-ones-too"
    one_summary_then_normal "43-one-summary-then-normal"
    a_directive_is_obeyed_once "44-a-directive-is-obeyed-once"
    a_duplicate_is_typed_for_while_it_lives "44-a-duplicate-is-typed-for-while-it-lives"
    an_empty_id_is_none "44-an-empty-id-is-none"
    the_same_message_once "44-the-same-message-once"
    what_nobody_heard_may_come_again "44-what-nobody-heard-may-come-again"
    a_back_off_ends_with_its_message "45-a-back-off-ends-with-its-message"
    of_two_only_the_failing_one_is_set_aside "45-of-two-only-the-failing-one-is-set-aside"
    a_failing_message_is_set_aside_alone "45-a-failing-message-is-set-aside-alone"
    of_several_only_the_bad_one "45-of-several-only-the-bad-one"
    sent_again_by_both "45-sent-again-by-both"
    what_was_set_aside_is_sent_again "45-what-was-set-aside-is-sent-again"
    a_heartbeat_gives_no_directive_when_busy "46-a-heartbeat-gives-no-directive-when-busy"
    in_the_instant_the_turn_ends "46-in-the-instant-the-turn-ends"
    directives "47-directives"
    a_fresh_start_is_made_once "47-a-fresh-start-is-made-once"
    a_fresh_start_needs_room "47-a-fresh-start-needs-room"
    directives_that_make_no_sense "47-directives-that-make-no-sense"
    stop_and_new "47-stop-and-new"
    stop_takes_what_was_meant_for_the_turn "47-stop-takes-what-was-meant-for-the-turn"
    typing_from_acceptance "48-typing-from-acceptance"
    a_message_in_a_waiting_turn_is_withdrawn "49-a-message-in-a-waiting-turn-is-withdrawn"
    a_queue_can_be_edited "49-a-queue-can-be-edited"
    a_switch_to_latest_leaves_the_newest "49-a-switch-to-latest-leaves-the-newest"
    live_changes_apply_to_what_waits "49-live-changes-apply-to-what-waits"
    precedence "49-precedence"
    the_same_call_joins_however_long_it_runs "59-the-same-call-joins-however-long-it-runs"
    a_dead_runner_needs_no_lease "64-a-dead-runner-needs-no-lease"
    an_asker_s_lane_bounds_and_parts_nobody "rule-an-asker-s-lane-bounds-and-parts-nobody"
    a_batch_leaves_kept_slots_alone "rule-a-batch-leaves-kept-slots-alone"
    a_call_is_repeated_only_until_it_has_ended "rule-a-call-is-repeated-only-until-it-has-ended"
    a_key_belongs_to_the_newest_task "rule-a-key-belongs-to-the-newest-task"
    a_lane_that_is_let_go_tells_its_last_change_once "rule-a-lane-that-is-let-go-tells-its-last-change-once"
    a_lost_turn_is_redelivered "rule-a-lost-turn-is-redelivered"
    a_pause_gives_kept_slots_back "rule-a-pause-gives-kept-slots-back"
    a_timeout_is_retried_like_a_failure "rule-a-timeout-is-retried-like-a-failure"
    asking_twice_is_asking_once "rule-asking-twice-is-asking-once"
    children_end_with_their_parent "rule-children-end-with-their-parent"
    deadlines_and_boosts "rule-deadlines-and-boosts"
    estimates_look_at_every_lane "rule-estimates-look-at-every-lane"
    global_is_a_lane_like_any_other "rule-global-is-a-lane-like-any-other"
    later_and_in_order "rule-later-and-in-order"
    one_line_of_turns_and_messages "rule-one-line-of-turns-and-messages"
    only_changed_lanes_are_told "rule-only-changed-lanes-are-told"
    pause_and_drain_are_independent "rule-pause-and-drain-are-independent"
    pause_resume_drain "rule-pause-resume-drain"
    places_in_a_conversation_s_line "rule-places-in-a-conversation-s-line"
    priority_can_be_changed "rule-priority-can-be-changed"
    room_is_asked_when_a_message_is_accepted "rule-room-is-asked-when-a-message-is-accepted"
    settings_of_patterns "rule-settings-of-patterns"
    slots_are_kept_for_the_passed_over "rule-slots-are-kept-for-the-passed-over"
    two_starving_tasks_have_their_slots "rule-two-starving-tasks-have-their-slots"
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn check(file: &str) {
    let path = folder().join(file).with_extension("scenario");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# "), "{file}: the first line says in words what must be true");
    let (script, expected) = text.split_once("\n---\n").unwrap_or((text.trim_end(), ""));
    let played = in_text(&play(script).unwrap_or_else(|error| panic!("{file}: {error}")));
    let restarted = in_text(&play_with_restarts(script).unwrap_or_else(|error| panic!("{file}: {error}")));
    if played != restarted {
        panic!(
            "{file}: a restart after every line changes what happens\n{}",
            difference(&played, &restarted)
        );
    }
    if played == expected {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{script}\n---\n{played}")).unwrap();
        return;
    }
    panic!("{file}: - is expected, + is what happened\n{}", difference(expected, &played));
}

fn in_text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Both texts line by line: what they share, what only the first has (-) and what only the second has (+).
fn difference(first: &str, second: &str) -> String {
    let (first, second): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    // The length of the longest common rest from each pair of places on.
    let mut common = vec![vec![0usize; second.len() + 1]; first.len() + 1];
    for (i, a) in first.iter().enumerate().rev() {
        for (j, b) in second.iter().enumerate().rev() {
            common[i][j] =
                if a == b { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut told) = (0, 0, String::new());
    while i < first.len() || j < second.len() {
        if i < first.len() && j < second.len() && first[i] == second[j] {
            told.push_str(&format!("  {}\n", first[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == second.len() || i < first.len() && common[i + 1][j] >= common[i][j + 1] {
            told.push_str(&format!("- {}\n", first[i]));
            i += 1;
        } else {
            told.push_str(&format!("+ {}\n", second[j]));
            j += 1;
        }
    }
    told
}

#[test]
fn no_file_is_left_out() {
    let found: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| {
            entry.unwrap().path().with_extension("").file_name().unwrap().to_string_lossy().into_owned()
        })
        .collect();
    let listed: BTreeSet<String> = FILES.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(found, listed);
}
