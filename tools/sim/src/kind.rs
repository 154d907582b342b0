//! Everything that can happen in a history: what goes wrong, and what is asked.

/// Lists each sort once, so that none can be missing among all of them.
macro_rules! kinds {
    (faults { $($(#[$fault_doc:meta])* $fault:ident,)* } asks { $($(#[$ask_doc:meta])* $ask:ident,)* }) => {
        /// One sort of thing that happens.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$fault_doc])* $fault,)*
            $($(#[$ask_doc])* $ask,)*
        }

        impl Kind {
            /// All of them, what goes wrong first.
            pub const ALL: &[Kind] = &[$(Kind::$fault,)* $(Kind::$ask,)*];
            /// How many of them go wrong or get in the way.
            pub const FAULTS: usize = [$(Kind::$fault,)*].len();
        }
    };
}

kinds! {
    faults {
        /// An append does not reach the store.
        RequestLost,
        /// An append is written, and the answer does not come back.
        ReplyLost,
        /// The store refuses an append at once.
        AppendRefused,
        /// The store falls over in the middle of an append, which leaves nothing, and starts again.
        AppendTorn,
        /// An append takes long.
        AppendSlow,
        /// An append reaches the store after its sender has given up.
        AppendLate,
        /// A read is refused.
        ReadRefused,
        /// A read takes long.
        ReadSlow,
        /// A replica gets no hint that the log has grown.
        HintLost,
        /// A replica gets a hint of an older version.
        HintStale,
        /// A replica gets the same hint twice.
        HintTwice,
        /// A snapshot is lost after the store said that it has it.
        SnapshotLost,
        /// An older snapshot is found in place of the newest.
        SnapshotOlder,
        /// The log is trimmed to the snapshot under those who read it.
        LogTrimmed,
        /// The store is away for everybody.
        StoreAway,
        /// One replica is cut off from the store.
        LinkCut,
        /// The store loses the end of its log, as at a failover.
        TailLost,
        /// The store's clock jumps ahead.
        StoreClockAhead,
        /// The store's clock jumps back.
        StoreClockBack,
        /// A replica's clock jumps ahead.
        ReplicaClockAhead,
        /// A replica's clock jumps back.
        ReplicaClockBack,
        /// A replica dies at whatever it waits for, and starts again.
        ReplicaCrash,
        /// A replica stands still for longer than a lease.
        ReplicaPause,
        /// A replica is shut down in peace, and starts again.
        ReplicaLeave,
        /// A replica is of an older version that cannot read what the others write.
        OldProgram,
        /// A worker dies at whatever it waits for, and starts again.
        WorkerCrash,
        /// A worker stands still for longer than a lease.
        WorkerPause,
        /// A caller is gone before the answer.
        ClientCrash,
        /// What is asked takes long to get there.
        CallSlow,
        /// What is asked does not get there.
        CallLost,
        /// The answer does not come back.
        AnswerLost,
        /// A limit is raised in flight.
        LimitRaised,
        /// A limit is lowered in flight.
        LimitLowered,
        /// The mode of a session is changed in flight.
        ModeChanged,
        /// A worker reports under the fence of an attempt that it lost.
        StaleReport,
        /// A worker reports the same twice.
        DoubleReport,
        /// The same is asked twice, under one key.
        Resent,
        /// A task that waits or runs is cancelled.
        Cancel,
        /// A line is cleared.
        Clear,
        /// What runs in a lane loses its slots.
        ForceRelease,
        /// A lane is paused for a while.
        PauseLane,
        /// A turn is interrupted.
        Interrupt,
        /// A waiting message is taken back.
        Withdraw,
    }
    asks {
        /// Work of a named handler.
        Submit,
        /// A turn of a conversation.
        SubmitTurn,
        /// Work for workers.
        SubmitExternal,
        /// A closure that runs where it was asked for.
        RunSlot,
        /// A dead letter runs again.
        Redrive,
        /// A message, mode `collect`.
        SendCollect,
        /// A message, mode `followup`.
        SendFollowup,
        /// A message, mode `steer`.
        SendSteer,
        /// A message, mode `steer-backlog`.
        SendSteerBacklog,
        /// A message, mode `interrupt`.
        SendInterrupt,
        /// A message, mode `reject`.
        SendReject,
        /// A message, mode `latest`.
        SendLatest,
    }
}

impl Kind {
    /// What goes wrong or gets in the way.
    pub fn faults() -> &'static [Kind] {
        &Kind::ALL[..Kind::FAULTS]
    }

    /// What is asked.
    pub fn asks() -> &'static [Kind] {
        &Kind::ALL[Kind::FAULTS..]
    }

    /// Whether it goes wrong or gets in the way.
    pub fn is_fault(self) -> bool {
        (self as usize) < Kind::FAULTS
    }

    /// Its name in words.
    pub fn name(self) -> String {
        let mut name = String::new();
        for letter in format!("{self:?}").chars() {
            if letter.is_uppercase() && !name.is_empty() {
                name.push(' ');
            }
            name.push(letter.to_ascii_lowercase());
        }
        name
    }
}
