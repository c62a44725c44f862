import MartletDemo

/// A soak's report, in words or as JSON.
enum SoakText {
    static func lines(_ report: SoakReport) -> [String] {
        let account = report.account
        var lines = [
            "",
            "soak             \(report.devices) devices, \(report.pace) saves a second for"
                + " \(seconds(report.length)) after the warm-up, seed \(report.seed)",
            "saves            \(account.saves), change sets \(account.changeSets), conflicts"
                + " \(account.conflicts)",
            "came back        \(part(report.comeBacks))",
            "opened again     \(part(report.reopenings))",
            "failed exchanges \(report.failures)",
            "",
            "save until judged, in tenths of the time:",
        ]
        lines += report.saves.map { "                 \(part($0))" }
        lines.append("exchange with nothing to send:")
        lines += report.syncs.map { "                 \(part($0))" }
        lines.append("")
        for usage in report.usages {
            let figures = SoakFigure.allCases.compactMap { figure in
                usage.trends[figure].map { trend in
                    "\(figure.rawValue) \(figure.text(trend.start)) to \(figure.text(trend.end))"
                        + " (slope \(figure.text(trend.growth)) a run)"
                }
            }
            let share = (usage.processors * 100).rounded() / 100
            lines.append("\(usage.name): \(figures.joined(separator: ", ")); \(share) processors")
        }
        lines.append("")
        lines += report.checks.map { "\($0.verdict.rawValue): \($0.name) (\($0.words))" }
        return lines + account.findings
    }

    private static func part(_ part: SoakPart) -> String {
        "\(part.count) times, p50 \(milliseconds(part.median)), p99"
            + " \(milliseconds(part.percentile99))"
    }

    private static func milliseconds(_ time: Duration) -> String {
        "\((time / .microseconds(100)).rounded() / 10) ms"
    }

    private static func seconds(_ time: Duration) -> String {
        "\(Int((time / .seconds(1)).rounded())) s"
    }

    static func json(_ report: SoakReport) -> JSONText {
        .object([
            ("seed", .text(String(report.seed))), ("devices", .integer(Int64(report.devices))),
            ("seconds", .real(report.length / .seconds(1))), ("savesPerSecond", .real(report.pace)),
            ("saves", .list(report.saves.map(json))), ("syncs", .list(report.syncs.map(json))),
            ("comeBacks", json(report.comeBacks)), ("reopenings", json(report.reopenings)),
            ("failedExchanges", .integer(Int64(report.failures))),
            ("processes", .object(report.usages.map { ($0.name, json($0)) })),
            (
                "checks",
                .list(
                    report.checks.map { check in
                        .object([
                            ("name", .text(check.name)),
                            ("verdict", .text(check.verdict.rawValue)),
                            ("figures", .text(check.words)),
                        ])
                    })
            ),
            ("changeSets", .integer(Int64(report.account.changeSets))),
            ("lost", .integer(Int64(report.account.lost))),
            ("doubled", .integer(Int64(report.account.doubled))),
            ("findings", .list(report.account.findings.map { .text($0) })),
            ("passed", .boolean(report.isGood)),
        ])
    }

    private static func json(_ part: SoakPart) -> JSONText {
        .object([
            ("count", .integer(Int64(part.count))),
            ("medianSeconds", .real(part.median / .seconds(1))),
            ("percentile99Seconds", .real(part.percentile99 / .seconds(1))),
        ])
    }

    private static func json(_ usage: SoakReport.Usage) -> JSONText {
        let trends = SoakFigure.allCases.compactMap { figure -> (String, JSONText)? in
            guard let trend = usage.trends[figure] else { return nil }
            let members: [(String, JSONText)] = [
                ("start", .real(trend.start)), ("end", .real(trend.end)),
                ("growth", .real(trend.growth)),
            ]
            let isSize = figure == .memory || figure == .files
            return (figure.rawValue + (isSize ? "KiB" : ""), .object(members))
        }
        return .object(trends + [("processors", .real(usage.processors))])
    }
}
