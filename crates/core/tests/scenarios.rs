//! Every behaviour of lanes, of external tasks and of sessions, as a script and the events that follow.
//!
//! A file in `scenarios/` states the behaviour, then comes the script, a line `---`, and the whole output. With
//! `UPDATE=1` in the environment the test writes the outputs again; check the difference.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use laneway_scenario::{Line, play, play_with_restarts};

/// A test for each scenario: `order::background_tasks_age` plays `scenarios/order/background-tasks-age.scenario`.
macro_rules! scenarios {
    ($($folder:ident { $($name:ident)* })*) => {
        $(mod $folder { $(#[test] fn $name() { super::check(stringify!($folder), stringify!($name)); })* })*

        const SCENARIOS: &[(&str, &str)] = &[$($((stringify!($folder), stringify!($name)),)*)*];
    };
}

scenarios! {
    cancelling_and_timeouts {
        a_cancel_and_a_grant_have_one_outcome
        a_delay_does_not_count_as_waiting
        a_held_task_does_not_wait_yet
        a_retry_starts_a_new_wait_timeout
        a_task_may_have_its_own_timeout
        a_timeout_is_retried_like_a_failure
        a_wait_timeout_ends_a_waiting_task
        all_waiting_tasks
        clear_answers_the_number_of_tasks
        ten_thousand_tasks_in_one_command
        the_second_of_three
    }
    directives {
        a_busy_session_drops_heartbeat_directives
        a_directive_runs_once
        a_fresh_start_happens_once
        a_fresh_start_needs_room
        a_text_for_the_running_turn
        directives_for_a_session_or_a_message
        invalid_directives
        stop_and_new
        stop_ends_messages_for_the_turn
    }
    idempotency {
        a_duplicate_shows_typing
        a_key_belongs_to_the_newest_task
        a_key_may_hold_until_the_end
        a_key_of_a_live_task_outlives_a_day
        a_message_counts_once
        a_repeated_request_joins_the_task
        an_empty_message_id_is_no_id
        an_undelivered_message_may_come_again
    }
    lanes {
        lane_names
        pause_and_drain_are_independent
        pause_resume_and_drain
        the_most_specific_settings_apply
        unused_lanes_are_removed
    }
    limits {
        a_changed_rate_keeps_the_owed_grants
        a_full_lane_does_not_block_other_lanes
        a_full_lane_refuses_tasks
        an_idle_lane_allows_a_whole_burst
        an_unlimited_rate_blocks_no_task
        four_run_and_six_wait
        free_slots_are_filled_at_once
        global_is_a_lane_like_any_other
        invalid_settings_are_refused
        limits_change_while_tasks_run
        the_lane_of_a_caller_limits_all_its_work
    }
    monitoring {
        a_notice_while_waiting
        a_removed_lane_reports_its_last_change_once
        a_retried_task_gets_another_notice
        counters_and_histograms
        estimates_consider_every_lane
        only_changed_lanes_are_reported
        pressure_and_alerts_are_reported_once
        the_last_end_is_reported
    }
    order {
        a_new_priority_resets_the_added_levels
        a_pause_releases_reserved_slots
        a_retry_gives_its_share_back
        a_served_session_waits_for_the_others
        a_task_may_start_later_or_after_another
        ageing_stops_at_the_highest_waiting_level
        background_tasks_age
        boosted_tasks_do_not_starve_others
        deadlines_and_boosts
        equal_lanes_alternate
        schedules_go_before_agents
        slots_are_reserved_for_a_passed_over_task
        the_priority_of_a_waiting_task_may_change
        two_passed_over_tasks_get_their_slots
        urgent_sources_start_first
        urgent_tasks_do_not_starve_background_tasks
        weights_divide_the_grants
    }
    parents {
        a_budget_bounds_the_children_of_each_parent
        a_chain_has_at_most_eight_tasks
        a_chain_through_two_lanes_and_back
        a_child_borrows_the_slot_of_its_parent
        a_child_may_not_wait_for_its_parent
        a_detached_child_starts_a_new_chain
        a_reserved_slot_does_not_block_a_child
        children_end_with_their_parent
        parents_may_not_wait_for_each_other
    }
    parked_messages {
        a_back_off_ends_with_its_message
        a_failing_message_is_parked_alone
        a_lost_turn_is_redelivered
        a_message_sent_again_by_two_callers_counts_once
        a_parked_message_can_be_sent_again
        a_timed_out_turn_comes_last
        a_turn_that_gives_up_is_not_tried_again
        only_the_failing_message_of_three_is_parked
        only_the_failing_message_of_two_is_parked
        the_conversation_goes_on_during_a_back_off
        the_number_of_attempts_is_a_setting
    }
    queue_modes {
        a_channel_is_known_in_any_case
        a_failed_summary_includes_newer_messages
        a_failing_summary_ends
        a_summary_is_sent_once
        a_switch_to_latest_keeps_the_newest
        an_idle_session_starts_at_once
        collected_messages_become_one_turn
        debounce_and_max_wait
        drop_old_and_drop_new
        dropped_messages_are_summarized
        each_message_has_its_own_max_wait
        followup_messages_get_separate_turns
        interrupt
        new_settings_apply_to_waiting_messages
        permissions_separate_turns
        places_separate_turns
        precedence_of_settings
        queue_reject_and_latest
        two_sessions_become_due_together
    }
    retries_and_dead_letters {
        a_dead_letter_can_be_redriven
        a_fixed_delay_has_no_cap
        a_panic_frees_its_slot
        a_retried_task_keeps_its_place
        a_strategy_after_none_has_the_standard_values
        delays_double_up_to_the_cap
        the_oldest_dead_letter_goes_first
        the_third_attempt_succeeds
    }
    sessions {
        a_message_at_the_end_of_a_turn
        a_message_in_a_waiting_turn_can_be_withdrawn
        one_task_of_a_session_at_a_time
        room_is_checked_at_acceptance
        submitted_turns_have_places
        three_sources_of_one_session
        turns_and_messages_share_one_order
        typing_starts_at_acceptance
        waiting_messages_can_be_edited
    }
    steering {
        a_message_may_name_the_turn
        a_message_sent_both_ways_is_retried_once
        a_message_steers_the_running_turn
        a_new_attempt_gets_the_messages_again
        a_summary_turn_has_a_place_and_permissions
        a_waiting_message_is_promoted_or_a_pending_one_withdrawn
        late_messages_keep_their_order
        messages_stay_on_offer_until_taken
        other_places_and_permissions_do_not_steer
        steer_backlog_respects_the_cap
        steer_backlog_steers_and_waits
        steering_skips_tool_calls
    }
    tool_batches {
        a_batch_is_accepted_whole_or_refused
        a_batch_takes_no_reserved_slot
        priorities_of_tool_lanes
        reads_run_together_and_writes_in_order
        tools_have_lanes
    }
    workers_and_leases {
        a_released_attempt_reports_too_late
        a_repeated_end_frees_no_slot
        a_second_completion_is_refused
        a_silent_worker_loses_its_lease
        a_worker_has_its_lease_to_stop
        each_heartbeat_renews_the_lease
        heartbeats_keep_a_long_attempt
        no_worker_claims_a_hybrid_task
        retries_and_redeliveries_count_separately
        the_pending_list_has_the_order_of_claims
        the_tasks_of_a_dead_owner_end_at_once
        two_workers_never_get_the_same_task
        unclaimed_and_unfinished_tasks_end
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// The path of a scenario below `scenarios/`.
fn file_of(folder: &str, name: &str) -> String {
    format!("{folder}/{name}.scenario").replace('_', "-")
}

fn check(folder: &str, name: &str) {
    let file = file_of(folder, name);
    let path = root().join(&file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# "), "{file}: the first line states the behaviour");
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
    panic!("{file}: - is expected, + has happened\n{}", difference(expected, &played));
}

fn in_text(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Compares two texts line by line: `-` marks a line of the first text alone, `+` a line of the second alone.
fn difference(first: &str, second: &str) -> String {
    let (first, second): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    // The length of the longest common subsequence after each pair of lines.
    let mut common = vec![vec![0usize; second.len() + 1]; first.len() + 1];
    for (i, a) in first.iter().enumerate().rev() {
        for (j, b) in second.iter().enumerate().rev() {
            common[i][j] =
                if a == b { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut output) = (0, 0, String::new());
    while i < first.len() || j < second.len() {
        if i < first.len() && j < second.len() && first[i] == second[j] {
            output.push_str(&format!("  {}\n", first[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == second.len() || i < first.len() && common[i + 1][j] >= common[i][j + 1] {
            output.push_str(&format!("- {}\n", first[i]));
            i += 1;
        } else {
            output.push_str(&format!("+ {}\n", second[j]));
            j += 1;
        }
    }
    output
}

fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

#[test]
fn every_file_has_a_test() {
    let root = root();
    let relative = |path: PathBuf| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
    let found: BTreeSet<String> =
        files_in(&root).flat_map(|folder| files_in(&folder).map(relative).collect::<Vec<_>>()).collect();
    let listed: BTreeSet<String> = SCENARIOS.iter().map(|(folder, name)| file_of(folder, name)).collect();
    assert_eq!(found, listed);
}
