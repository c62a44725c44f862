import MartletDemo

/// A demo's report, in words or as JSON.
enum DemoText {
    static func lines(_ report: DemoReport, directory: String) -> [String] {
        let stages = zip(DemoProgress.Stage.allCases, report.seconds).map { stage, time in
            "\(stage.rawValue) \(seconds(time))"
        }
        var lines = [
            "",
            "records          \(report.account.records) of \(report.account.types) types",
            "change sets      \(report.account.changeSets), revisions without a gap"
                + (report.account.gaps == 0 ? "" : ": NO, \(report.account.gaps) gaps"),
            "saves            \(report.account.saves)",
            "conflicts        \(report.account.conflicts), kept \(report.account.kept)",
            "exchanges        \(report.exchanges), answers lost \(report.lostAnswers), requests lost"
                + " \(report.lostRequests), retries \(report.retries)",
            live(report.live, least: report.leastWithinSecond),
            "joined           one more device in \(milliseconds(report.join.time)), from the snapshot of"
                + " revision \(report.join.began)",
            "lost             \(report.account.lost)",
            "doubled          \(report.account.doubled)",
            "replicas equal   \(report.account.equalReplicas)/\(report.account.replicas)",
            "time             \(seconds(report.total)): \(stages.joined(separator: ", "))",
            "disk             \(report.diskBytes / 1_000_000) MB in \(directory), seed \(report.seed)",
            "",
        ]
        if let views = report.views {
            let lost = lines.firstIndex { $0.hasPrefix("time ") } ?? lines.endIndex
            lines.insert(contentsOf: text(views), at: lost)
        }
        if let story = report.story { lines.insert("meanwhile        \(story)", at: 6) }
        lines += report.account.findings
        lines.append(
            report.isGood
                ? "lost \(report.account.lost), doubled \(report.account.doubled),"
                    + " replicas equal \(report.account.equalReplicas)/\(report.account.replicas)"
                    + (report.views.map { ", leaks \($0.leaks)" } ?? "")
                : "A check failed. Please report it with the seed and the folder \(directory).")
        return lines
    }

    private static func text(_ views: ViewFigures) -> [String] {
        [
            "rows hidden      \(views.hidden), from \(views.devices) devices of \(views.people) coaches",
            "moves            \(views.moves) into a view or out of it",
            "purges confirmed \(views.confirmed)/\(views.devices)",
            "leaks            \(views.leaks)",
        ]
    }

    private static func live(_ live: LiveFigures, least: Double) -> String {
        let percent = (live.withinSecond * 1_000).rounded(.down) / 10
        return "live             \(live.changes) changes seen \(live.sights) times: median"
            + " \(milliseconds(live.median)), 99th percentile \(milliseconds(live.percentile99)),"
            + " worst \(milliseconds(live.worst)); \(percent) % within 1 s"
            + (live.withinSecond < least ? ", NOT \(Int(least * 100)) %" : "")
            + "; \(live.cuts) connections cut"
    }

    private static func milliseconds(_ time: Duration) -> String {
        "\(Int((time / .milliseconds(1)).rounded())) ms"
    }

    static func json(_ report: DemoReport) -> JSONText {
        let stages = zip(DemoProgress.Stage.allCases, report.seconds).map { stage, time in
            (stage.rawValue, JSONText.real(time / .seconds(1)))
        }
        return .object([
            ("seed", .text(String(report.seed))),
            ("records", .integer(Int64(report.account.records))),
            ("types", .integer(Int64(report.account.types))),
            ("changeSets", .integer(Int64(report.account.changeSets))),
            ("saves", .integer(Int64(report.account.saves))),
            ("conflicts", .integer(Int64(report.account.conflicts))),
            ("kept", .integer(Int64(report.account.kept))),
            ("otherTransactions", .integer(Int64(report.account.otherTransactions))),
            ("exchanges", .integer(Int64(report.exchanges))),
            ("retries", .integer(Int64(report.retries))),
            ("lost", .integer(Int64(report.account.lost))),
            ("doubled", .integer(Int64(report.account.doubled))),
            ("gaps", .integer(Int64(report.account.gaps))),
            ("equalReplicas", .integer(Int64(report.account.equalReplicas))),
            ("replicas", .integer(Int64(report.account.replicas))),
            (
                "live",
                .object([
                    ("changes", .integer(Int64(report.live.changes))),
                    ("sights", .integer(Int64(report.live.sights))),
                    ("medianSeconds", .real(report.live.median / .seconds(1))),
                    ("percentile99Seconds", .real(report.live.percentile99 / .seconds(1))),
                    ("worstSeconds", .real(report.live.worst / .seconds(1))),
                    ("withinSecond", .real(report.live.withinSecond)),
                    ("cuts", .integer(Int64(report.live.cuts))),
                ])
            ),
            ("views", report.views.map(json) ?? .null),
            ("joinSeconds", .real(report.join.time / .seconds(1))),
            ("joinRevision", .integer(report.join.began)),
            ("diskBytes", .integer(Int64(report.diskBytes))), ("seconds", .object(stages)),
            ("findings", .list(report.account.findings.map { .text($0) })),
            ("passed", .boolean(report.isGood)),
        ])
    }

    private static func json(_ views: ViewFigures) -> JSONText {
        .object([
            ("devices", .integer(Int64(views.devices))), ("people", .integer(Int64(views.people))),
            ("rowsHidden", .integer(Int64(views.hidden))), ("moves", .integer(Int64(views.moves))),
            ("purgesConfirmed", .integer(Int64(views.confirmed))),
            ("leaks", .integer(Int64(views.leaks))),
        ])
    }

    private static func seconds(_ time: Duration) -> String {
        let tenths = (time / .milliseconds(100)).rounded() / 10
        return "\(tenths) s"
    }
}
