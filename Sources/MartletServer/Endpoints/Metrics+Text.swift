internal import HTTPKit
internal import MartletRedis
internal import MartletServerCore

extension Metrics {
    /// Returns the metrics in the text format of Prometheus (exposition format 0.0.4).
    func text(
        queueDepths: [(dataSet: String, depth: Int)], changed: Set<String> = [],
        dataSets: DataSetDirectory.Counts = .init(),
        blockedWriters: [(dataSet: String, seconds: Double)] = [],
        lockedTables: [(dataSet: String, count: Int)] = [],
        server: HTTPServerCounters,
        usage: ProcessUsage, redis: CacheCounters.Counts? = nil,
        following: [Watcher.FollowingState] = []
    ) -> String {
        let counts = current
        var text = PrometheusText()
        text.family("martlet_requests_total", "counter", "Requests answered.")
        let requests = counts.requests.sorted {
            ($0.key.endpoint, $0.key.status, $0.key.kind)
                < ($1.key.endpoint, $1.key.status, $1.key.kind)
        }
        for (request, count) in requests {
            text.sample(
                "martlet_requests_total",
                [
                    ("endpoint", request.endpoint), ("status", String(request.status)),
                    ("kind", request.kind),
                ], count)
        }
        text.single("martlet_sets_accepted_total", "counter", "Accepted sets.", counts.accepted)
        text.family("martlet_sets_refused_total", "counter", "Refused change sets by reason.")
        for (reason, count) in counts.refused.sorted(by: { $0.key < $1.key }) {
            text.sample("martlet_sets_refused_total", [("reason", reason)], count)
        }
        appendBatches(counts, to: &text)
        text.family("martlet_queue_depth", "gauge", "Requests waiting for the writer.")
        for (dataSet, depth) in queueDepths {
            text.sample("martlet_queue_depth", [("data_set", dataSet)], depth)
        }
        text.single(
            "martlet_answer_bytes_total", "counter", "Bytes of answers' bodies.",
            counts.answerBytes)
        text.single(
            "martlet_pulls_from_memory_total", "counter", "Pulls answered from memory.",
            counts.cacheHits)
        text.single(
            "martlet_pulls_from_storage_total", "counter", "Pulls that had to read the log.",
            counts.cacheMisses)
        text.single(
            "martlet_differences_total", "counter", "Answers with rows in place of entries.",
            counts.differences)
        text.single(
            "martlet_log_entries_compacted_total", "counter",
            "Entries of the log emptied by compaction.", counts.entriesEmptied)
        text.single(
            "martlet_rows_left_out_total", "counter",
            "Times a row was left out because no device can be sent its values.",
            counts.rowsLeftOut)
        appendSnapshots(counts, to: &text)
        append(dataSets, blockedWriters, counts, to: &text)
        text.family(
            "martlet_tables_locked", "gauge",
            "Tables that another program has kept locked whole for more than three seconds.")
        for (name, count) in lockedTables {
            text.sample("martlet_tables_locked", [("data_set", name)], Double(count))
        }
        append(changed, among: queueDepths.map(\.dataSet), counts, to: &text)
        if let redis { append(redis, to: &text) }
        if !following.isEmpty { append(following, counts.externalTaken, to: &text) }
        append(server, usage, to: &text)
        return text.text
    }

    private func appendSnapshots(_ counts: Counts, to text: inout PrometheusText) {
        text.single(
            "martlet_snapshots_made_total", "counter", "Snapshots made.", counts.snapshotsMade)
        text.single(
            "martlet_snapshots_failed_total", "counter", "Snapshots that could not be made.",
            counts.snapshotsFailed)
        text.single(
            "martlet_snapshot_bytes_total", "counter", "Bytes of snapshots' files sent.",
            counts.snapshotBytes)
    }

    private func append(
        _ changed: Set<String>, among names: [String], _ counts: Counts,
        to text: inout PrometheusText
    ) {
        text.family(
            "martlet_tables_changed", "gauge",
            "Whether the tables have changed and are not taken up yet: requests may get 503.")
        for name in names {
            text.sample(
                "martlet_tables_changed", [("data_set", name)], changed.contains(name) ? 1 : 0)
        }
        text.single(
            "martlet_tables_taken_up_total", "counter", "Times changed tables were taken up.",
            counts.takenUp)
        text.single(
            "martlet_tables_not_taken_up_total", "counter",
            "Times changed tables could not be taken up.", counts.notTakenUp)
    }

    private func appendBatches(_ counts: Counts, to text: inout PrometheusText) {
        text.family("martlet_batch_sets", "histogram", "Change sets in one transaction.")
        var total = 0
        for (index, count) in counts.batches.enumerated() {
            total += count
            let bound = index < Self.batchBounds.count ? String(Self.batchBounds[index]) : "+Inf"
            text.sample("martlet_batch_sets_bucket", [("le", bound)], total)
        }
        text.sample("martlet_batch_sets_sum", [], counts.batchedSets)
        text.sample("martlet_batch_sets_count", [], total)
    }

    private func append(
        _ server: HTTPServerCounters, _ usage: ProcessUsage, to text: inout PrometheusText
    ) {
        text.single(
            "martlet_connections", "gauge", "Open connections.", server.openConnections)
        text.single(
            "martlet_connections_refused_total", "counter", "Connections turned away.",
            server.refusedConnections)
        text.single(
            "martlet_requests_refused_total", "counter", "Requests refused unread.",
            server.refusedRequests)
        text.single(
            "martlet_requests_aborted_total", "counter", "Requests whose client went away.",
            server.abortedRequests)
        text.single(
            "martlet_requests_in_flight", "gauge", "Requests being answered.",
            server.requestsInFlight)
        text.single(
            "martlet_waiting_bytes", "gauge", "Bytes of answers that clients have not taken.",
            server.waitingBytes)
        text.single(
            "martlet_answers_cut_total", "counter",
            "Connections closed because more waited for clients than may.", server.cutAnswers)
        text.single(
            "martlet_certificate_end_seconds", "gauge",
            "When the TLS certificate ends, in seconds since 1970; 0 without TLS.",
            Int(server.certificateEnd ?? 0))
        text.single("martlet_streams", "gauge", "Streams of events open.", server.openStreams)
        appendWebSockets(server, to: &text)
        text.family("process_cpu_seconds_total", "counter", "User and system time.")
        text.sample("process_cpu_seconds_total", [], usage.cpuSeconds)
        text.single(
            "process_resident_memory_bytes", "gauge", "Memory held.", usage.residentByteCount)
    }
}

extension Metrics {
    private func appendWebSockets(_ server: HTTPServerCounters, to text: inout PrometheusText) {
        text.single("martlet_websockets", "gauge", "Open WebSockets.", server.openWebSockets)
        text.family("martlet_websocket_messages_total", "counter", "Messages of WebSockets.")
        text.sample(
            "martlet_websocket_messages_total", [("direction", "in")],
            server.webSocketMessagesReceived)
        text.sample(
            "martlet_websocket_messages_total", [("direction", "out")],
            server.webSocketMessagesSent)
        text.family("martlet_websockets_ended_total", "counter", "WebSockets ended, by reason.")
        for (reason, count) in [
            ("fault", server.webSocketFaults), ("lost", server.webSocketsLost),
            ("slow", server.webSocketsStalled),
        ] {
            text.sample("martlet_websockets_ended_total", [("reason", reason)], count)
        }
    }
}

extension Metrics {
    private func append(
        _ dataSets: DataSetDirectory.Counts, _ blocked: [(dataSet: String, seconds: Double)],
        _ counts: Counts, to text: inout PrometheusText
    ) {
        text.single(
            "martlet_data_sets", "gauge", "Data sets that are known, open or not.", dataSets.known)
        text.single("martlet_data_sets_open", "gauge", "Data sets that are open.", dataSets.open)
        text.single(
            "martlet_data_sets_failed", "gauge",
            "Data sets that could not be opened when it was last tried.", dataSets.failed)
        text.single(
            "martlet_data_sets_opened_total", "counter", "Times a data set was opened.",
            counts.opened)
        text.single(
            "martlet_data_sets_closed_total", "counter",
            "Times a data set was closed because nobody used it.", counts.closed)
        text.family(
            "martlet_storage_faults_total", "counter",
            "Times a storage could not do its work, by kind; look: watching it began to fail.")
        for kind in StorageFault.Kind.allCases.map(\.rawValue).sorted() + ["look"] {
            text.sample(
                "martlet_storage_faults_total", [("kind", kind)],
                counts.storageFaults[kind] ?? 0)
        }
        text.family(
            "martlet_writer_blocked_seconds", "gauge",
            "Time for which every batch of the writer has failed; 0 while it works.")
        for (name, seconds) in blocked {
            text.sample("martlet_writer_blocked_seconds", [("data_set", name)], seconds)
        }
    }

    private func append(_ redis: CacheCounters.Counts, to text: inout PrometheusText) {
        text.family(
            "martlet_redis_blocks_total", "counter", "Blocks of entries, by what became of it.")
        for (outcome, count) in [
            ("hit", redis.hits), ("miss", redis.misses), ("rejected", redis.rejected),
            ("stored", redis.stored),
        ] {
            text.sample("martlet_redis_blocks_total", [("outcome", outcome)], count)
        }
        text.single(
            "martlet_redis_notices_total", "counter", "New revisions told to other processes.",
            redis.notices)
        text.single(
            "martlet_redis_failures_total", "counter", "Times Redis did not answer, or refused.",
            redis.failures)
    }

    private func append(
        _ states: [Watcher.FollowingState], _ taken: Int, to text: inout PrometheusText
    ) {
        text.family(
            "martlet_storage_age_seconds", "gauge", "Time since the storage was looked at last.")
        for state in states {
            text.sample("martlet_storage_age_seconds", [("data_set", state.dataSet)], state.lag)
        }
        let accounts = states.compactMap { state in state.account.map { (state.dataSet, $0) } }
        text.family(
            "martlet_external_changes_waiting", "gauge",
            "Changes other programs made that are not in the log yet.")
        for (name, account) in accounts {
            text.sample("martlet_external_changes_waiting", [("data_set", name)], account.waiting)
        }
        text.family(
            "martlet_oldest_writer_seconds", "gauge",
            "Age of the oldest open transaction that has written something.")
        for (name, account) in accounts {
            text.sample(
                "martlet_oldest_writer_seconds", [("data_set", name)], account.oldestWriterSeconds)
        }
        append(
            accounts.compactMap { name, account in account.slot.map { (name, $0) } }, to: &text)
        text.single(
            "martlet_external_sets_total", "counter",
            "Change sets made of what other programs wrote.", taken)
    }

    /// Appends the states of the replication slots from which external writes are read.
    private func append(_ slots: [(String, SlotStatus)], to text: inout PrometheusText) {
        guard !slots.isEmpty else { return }
        let families: [(String, String, (SlotStatus) -> Int64)] = [
            ("active", "1 where a server reads the replication slot.", { $0.isActive ? 1 : 0 }),
            (
                "lost", "1 where the slot is gone or has lost what it had to send.",
                { $0.isLost ? 1 : 0 }
            ),
            (
                "retained_bytes", "Write-ahead log that PostgreSQL keeps for the slot.",
                { $0.retainedBytes }
            ),
            ("lag_bytes", "Write-ahead log that is not read yet.", { $0.lagBytes }),
        ]
        for (name, help, value) in families {
            text.family("martlet_slot_\(name)", "gauge", help)
            for (dataSet, slot) in slots {
                text.sample("martlet_slot_\(name)", [("data_set", dataSet)], value(slot))
            }
        }
    }
}

/// Lines of the Prometheus text format.
private struct PrometheusText {
    private(set) var text = ""

    mutating func family(_ name: String, _ kind: String, _ help: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
    }

    mutating func sample(
        _ name: String, _ labels: [(String, String)], _ value: some CustomStringConvertible
    ) {
        text += name
        if !labels.isEmpty {
            text +=
                "{" + labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
                + "}"
        }
        text += " \(value)\n"
    }

    mutating func single(_ name: String, _ kind: String, _ help: String, _ value: Int) {
        family(name, kind, help)
        sample(name, [], value)
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "\\", "\"": escaped += "\\\(character)"
            case "\n": escaped += "\\n"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
