import MartletDemo

/// A demo's report, in words or as JSON.
enum DemoText {
    static func lines(_ report: DemoReport, directory: String) -> [String] {
        let stages = zip(DemoProgress.Stage.allCases, report.seconds).map { stage, time in
            "\(stage.rawValue) \(seconds(time))"
        }
        var lines = [
            "",
            "records          \(report.records) of \(report.types) types",
            "change sets      \(report.changeSets), revisions without a gap"
                + (report.gaps == 0 ? "" : ": NO, \(report.gaps) gaps"),
            "saves            \(report.saves)",
            "conflicts        \(report.conflicts), kept \(report.kept)",
            "exchanges        \(report.exchanges), answers lost \(report.lostAnswers), requests lost"
                + " \(report.lostRequests), retries \(report.retries)",
            "lost             \(report.lost)",
            "doubled          \(report.doubled)",
            "replicas equal   \(report.equalReplicas)/\(report.replicas)",
            "time             \(seconds(report.total)): \(stages.joined(separator: ", "))",
            "disk             \(report.diskBytes / 1_000_000) MB in \(directory), seed \(report.seed)",
            "",
        ]
        lines += report.findings
        lines.append(
            report.isGood
                ? "lost \(report.lost), doubled \(report.doubled),"
                    + " replicas equal \(report.equalReplicas)/\(report.replicas)"
                : "A check failed. Please report it with the seed and the folder \(directory).")
        return lines
    }

    static func json(_ report: DemoReport) -> JSONText {
        let stages = zip(DemoProgress.Stage.allCases, report.seconds).map { stage, time in
            (stage.rawValue, JSONText.real(time / .seconds(1)))
        }
        return .object([
            ("seed", .text(String(report.seed))), ("records", .integer(Int64(report.records))),
            ("types", .integer(Int64(report.types))),
            ("changeSets", .integer(Int64(report.changeSets))),
            ("saves", .integer(Int64(report.saves))),
            ("conflicts", .integer(Int64(report.conflicts))),
            ("kept", .integer(Int64(report.kept))),
            ("exchanges", .integer(Int64(report.exchanges))),
            ("retries", .integer(Int64(report.retries))), ("lost", .integer(Int64(report.lost))),
            ("doubled", .integer(Int64(report.doubled))), ("gaps", .integer(Int64(report.gaps))),
            ("equalReplicas", .integer(Int64(report.equalReplicas))),
            ("replicas", .integer(Int64(report.replicas))),
            ("diskBytes", .integer(Int64(report.diskBytes))), ("seconds", .object(stages)),
            ("findings", .list(report.findings.map { .text($0) })),
            ("passed", .boolean(report.isGood)),
        ])
    }

    private static func seconds(_ time: Duration) -> String {
        let tenths = (time / .milliseconds(100)).rounded() / 10
        return "\(tenths) s"
    }
}
