import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import MartletDevice

/// A standing and what is expected of it.
struct StandingCase<Expected: Sendable>: Sendable, CustomTestStringConvertible {
    let name: String
    let standing: Standing
    let expected: Expected

    init(_ name: String, _ standing: Standing, _ expected: Expected) {
        self.name = name
        self.standing = standing
        self.expected = expected
    }

    var testDescription: String { name }
}

extension Standing {
    fileprivate static let inStep = Standing(revision: 5, lineage: "l5", dataSet: "d")
    fileprivate static let fresh = Standing()
    /// A snapshot of revision 4 in three parts.
    fileprivate static let manifest = SnapshotManifest(
        format: 1, dataSet: "d", revision: 4, lineage: "l4", schema: "s",
        parts: ["first", "second", "third"].map { name in
            SnapshotManifest.Part(
                name: name, hash: String(repeating: "a", count: 64),
                plain: .init(bytes: 1, crc32: 2), types: [],
                codings: [.init(name: "gzip", sum: .init(bytes: 1, crc32: 2))])
        })
    fileprivate static let parts = MissingParts(manifest.parts.dropFirst(), of: manifest)

    fileprivate func with(_ change: (inout Standing) -> Void) -> Standing {
        var changed = self
        change(&changed)
        return changed
    }
}

@Suite("The standing of a device")
struct StandingTests {
    // MARK: - Conditions

    /// Everything that the standing says about the next request and what may be done meanwhile.
    private func text(of standing: Standing) -> String {
        let request = standing.request(wantsRows: false)
        var words = ["asks after \(request.maxRevision) \(request.lineage ?? "-")"]
        if request.wantsRows { words.append("rows") }
        if standing.maySend { words.append("sends") }
        if standing.canBeginWithSnapshot { words.append("snapshot") }
        if let pending = standing.installable { words.append(pending.next?.name ?? "no part") }
        if standing.isIncomplete { words.append("incomplete") }
        if standing.isAtOneRevision { words.append("at one revision") }
        words.append("of \(standing.newestOfHistory)")
        return words.joined(separator: ", ")
    }

    private static let refetching = Standing.fresh.with {
        $0.refetching = Standing.Refetching(goal: 9)
        $0.former = HistoryMark(revision: 8, lineage: "l8")
    }

    static let conditions: [StandingCase<String>] = [
        StandingCase("new", .fresh, "asks after 0 -, sends, snapshot, at one revision, of 0"),
        StandingCase("in step", .inStep, "asks after 5 l5, sends, at one revision, of 5"),
        StandingCase(
            "staged", .inStep.with { $0.stage(upTo: 7, lineage: "l7", isCut: false) },
            "asks after 7 l7, sends, incomplete, of 5"),
        StandingCase(
            "staged within a difference",
            .inStep.with { $0.stage(upTo: 7, lineage: "l7", isCut: true) },
            "asks after 7 l7, rows, sends, incomplete, of 5"),
        StandingCase(
            "staged snapshot", .fresh.with { $0.stage(Standing.manifest) },
            "asks after 4 l4, rows, sends, incomplete, of 0"),
        StandingCase(
            "sliced", .inStep.with { $0.slicedUpTo = 9 },
            "asks after 5 l5, rows, sends, of 5"),
        StandingCase(
            "new, and sliced", .fresh.with { $0.slicedUpTo = 9 },
            "asks after 0 -, rows, sends, of 0"),
        StandingCase(
            "seeding", .inStep.with { $0.missing = Standing.parts },
            "asks after 5 l5, rows, sends, second, incomplete, of 5"),
        StandingCase(
            "seeding with parts newer than the device",
            .fresh.with { $0.missing = Standing.parts },
            "asks after 0 -, rows, sends, incomplete, of 0"),
        StandingCase(
            "seeding, and the manifest is lost",
            .inStep.with { $0.missing = try? MissingParts(names: "second", manifest: nil) },
            "asks after 5 l5, rows, sends, incomplete, of 5"),
        StandingCase("emptied", refetching, "asks after 8 l8, incomplete, of 8"),
        StandingCase(
            "emptied, and nothing to confirm", refetching.with { $0.former = nil },
            "asks after 0 -, snapshot, incomplete, of 9"),
        StandingCase(
            "refetching", refetching.with { $0.refetching?.isConfirmed = true },
            "asks after 0 -, snapshot, incomplete, of 8"),
        StandingCase(
            "refetching, of a user who sees everything",
            refetching.with {
                $0.refetching?.isConfirmed = true
                $0.view = 0
            }, "asks after 0 -, snapshot, incomplete, of 8"),
        StandingCase(
            "refetching, of a user who sees a part",
            refetching.with {
                $0.refetching?.isConfirmed = true
                $0.view = 3
            }, "asks after 0 -, incomplete, of 8"),
        StandingCase(
            "refetching, all but the last are staged",
            refetching.with {
                $0.refetching?.isConfirmed = true
                $0.stage(upTo: 8, lineage: "l8", isCut: false)
            }, "asks after 8 l8, incomplete, of 8"),
        StandingCase(
            "refetching, all are staged",
            refetching.with {
                $0.refetching?.isConfirmed = true
                $0.stage(upTo: 9, lineage: "l9", isCut: false)
            }, "asks after 9 l9, sends, incomplete, of 8"),
        StandingCase(
            "refetched, not confirmed once more",
            refetching.with {
                $0.refetching?.isConfirmed = true
                $0.reach(9, lineage: "l9", isWhole: false)
            }, "asks after 8 l8, at one revision, of 8"),
        StandingCase(
            "rejoining", .inStep.with { ($0.rejoining, $0.queuedAgain) = (3, 2) },
            "asks after 0 -, rows, at one revision, of 5"),
        StandingCase(
            "rejoining, and staged up to the common revision",
            .inStep.with {
                $0.rejoining = 3
                $0.stage(upTo: 3, lineage: "r3", isCut: false)
            }, "asks after 3 r3, rows, sends, incomplete, of 5"),
        StandingCase(
            "rejoining, refetching and seeding",
            refetching.with {
                $0.rejoining = 3
                $0.missing = Standing.parts
            }, "asks after 0 -, rows, incomplete, of 8"),
    ]

    @Test("the next request, and what may be done meanwhile", arguments: conditions)
    func asks(_ one: StandingCase<String>) {
        #expect(text(of: one.standing) == one.expected)
    }

    @Test("rows are asked for if the caller wants them, but not with a history to confirm")
    func wantedRows() {
        #expect(Standing.inStep.request(wantsRows: true).wantsRows)
        #expect(!Self.refetching.request(wantsRows: true).wantsRows)
    }

    private static let batch = DeltaBatch.batch(5, 7, [.delete(6, "teams", "1")])

    private static func altered(_ change: (inout DeltaBatch) -> Void) -> DeltaBatch {
        var changed = batch
        change(&changed)
        return changed
    }

    static let batches: [StandingCase<(DeltaBatch, String)>] = [
        StandingCase("the next", .inStep, (batch, "fits")),
        StandingCase("one that overlaps", .inStep, (altered { $0.from = 3 }, "fits")),
        StandingCase("a gap", .inStep, (altered { $0.from = 6 }, "needs exchange")),
        StandingCase("without a beginning", .inStep, (altered { $0.from = nil }, "needs exchange")),
        StandingCase(
            "without a beginning, with its end",
            .inStep, (altered { ($0.from, $0.nextVersion) = (nil, 6) }, "fits")),
        StandingCase("an old one", .inStep.with { $0.revision = 7 }, (batch, "old 1")),
        StandingCase(
            "an old one while refetching", refetching.with { $0.revision = 7 }, (batch, "old 1")),
        StandingCase(
            "a difference", .inStep, (altered { $0.isDifference = true }, "needs exchange")),
        StandingCase("behind", .inStep, (altered { $0.isBehind = true }, "needs exchange")),
        StandingCase(
            "behind, and reached",
            .inStep, (altered { ($0.isBehind, $0.goesOn) = (true, 5) }, "old 0")),
        StandingCase(
            "behind, and not reached",
            .inStep, (altered { ($0.isBehind, $0.goesOn) = (true, 6) }, "needs exchange")),
        StandingCase(
            "staged", .inStep.with { $0.stage(upTo: 6, lineage: nil, isCut: false) },
            (batch, "needs exchange")),
        StandingCase("sliced", .inStep.with { $0.slicedUpTo = 6 }, (batch, "needs exchange")),
        StandingCase(
            "seeding", .inStep.with { $0.missing = Standing.parts }, (batch, "needs exchange")),
        StandingCase(
            "refetching", refetching.with { $0.revision = 5 }, (batch, "needs exchange")),
        StandingCase("rejoining", .inStep.with { $0.rejoining = 3 }, (batch, "needs exchange")),
    ]

    @Test("a batch of the stream fits, is old, or needs an exchange", arguments: batches)
    func receives(_ one: StandingCase<(DeltaBatch, String)>) {
        let outcome =
            switch one.standing.outcome(withoutApplying: one.expected.0) {
            case nil: "fits"
            case .old(let deltas): "old \(deltas)"
            case .needsExchange: "needs exchange"
            case .applied: "applied"
            }
        #expect(outcome == one.expected.1)
    }

    static let answers: [StandingCase<[Bool]>] = [
        // The answer to a request after revision 5: of entries, of a difference, on staged data,
        // and to a request of a device that was rejoining from revision 3.
        StandingCase("unchanged", .inStep, [true, true, true, false]),
        StandingCase("moved on", .inStep.with { $0.revision = 6 }, [true, false, false, false]),
        StandingCase("emptied", .fresh, [false, false, false, false]),
        StandingCase(
            "staged more", .inStep.with { $0.stage(upTo: 6, lineage: nil, isCut: false) },
            [true, true, false, false]),
        StandingCase(
            "rejoining from the same revision",
            .inStep.with {
                $0.rejoining = 3
                $0.stage(upTo: 5, lineage: nil, isCut: false)
            }, [true, true, true, true]),
        StandingCase(
            "rejoining from another revision",
            .inStep.with {
                $0.rejoining = 2
                $0.stage(upTo: 5, lineage: nil, isCut: false)
            }, [true, true, true, false]),
        StandingCase(
            "rejoining, and staged nothing", .inStep.with { $0.rejoining = 3 },
            [true, true, false, false]),
    ]

    @Test("an answer fits the file that it was asked for", arguments: answers)
    func isAnswered(_ one: StandingCase<[Bool]>) {
        let asked = Standing.Asked(named: 5, cursor: 5, rejoining: nil)
        let rejoining = Standing.Asked(named: 5, cursor: 5, rejoining: 3)
        var difference = ChangeSet()
        difference.isDifference = true
        let (entries, rows) = ([ChangeSet()][...], [difference][...])
        let standing = one.standing
        let fits = [
            standing.fits(entries, answering: asked, isOnStaged: false),
            standing.fits(rows, answering: asked, isOnStaged: false),
            standing.fits(rows, answering: asked, isOnStaged: true),
            standing.fits(rows, answering: rejoining, isOnStaged: true),
        ]
        #expect(fits == one.expected)
    }

    @Test("a log that ends before the former revision is noticed with its last answer")
    func tooEarly() {
        func ends(_ standing: Standing, at revision: Revision, more: Bool = false) -> Bool {
            var answer = SyncAnswer(maxRevision: revision)
            answer.more = more
            return standing.endsTooEarly(answer)
        }
        #expect(ends(Self.refetching, at: 8))
        #expect(!ends(Self.refetching, at: 9))
        #expect(!ends(Self.refetching, at: 8, more: true))
        #expect(!ends(Self.refetching.with { $0.rejoining = 3 }, at: 8))
        #expect(!ends(.inStep, at: 1))
    }

    // MARK: - Changes

    static let changes: [StandingCase<Standing>] = [
        StandingCase(
            "a slice of an answer",
            .inStep.with { $0.reach(7, lineage: nil, isWhole: false) },
            Standing(revision: 7, dataSet: "d")),
        StandingCase(
            "an answer without news",
            .inStep.with { $0.reach(5, lineage: "m5", dataSet: "e", isWhole: false) },
            Standing(revision: 5, lineage: "m5", dataSet: "e")),
        StandingCase(
            "a part of a snapshot, or a refusal",
            .inStep.with { $0.reach(5, lineage: nil, isWhole: false) }, .inStep),
        StandingCase(
            "an answer for an older revision",
            .inStep.with { $0.reach(4, lineage: "l4", isWhole: false) }, .inStep),
        StandingCase(
            "on the way to the former revision",
            refetching.with { $0.reach(8, lineage: "l8", dataSet: "d", isWhole: false) },
            refetching.with { ($0.revision, $0.lineage, $0.dataSet) = (8, "l8", "d") }),
        StandingCase(
            "at the former revision",
            refetching.with { $0.reach(9, lineage: "l9", isWhole: false) },
            Standing(
                revision: 9, lineage: "l9", former: .init(revision: 8, lineage: "l8"))),
        StandingCase(
            "a piece of a difference",
            .inStep.with {
                $0.stage(upTo: 9, lineage: "l9", isCut: false)
                $0.apply(slice: 3, of: 8)
                $0.apply(slice: 4, of: 7)
            },
            Standing(
                revision: 5, lineage: "l5", dataSet: "d",
                staged: .init(
                    revision: 9, lineage: "l9", base: .tables(slicedPart: 4)), slicedUpTo: 8)),
        StandingCase(
            "short of the pieces",
            .inStep.with {
                $0.slicedUpTo = 8
                $0.reach(7, lineage: "l7", isWhole: false)
            }, Standing(revision: 7, lineage: "l7", dataSet: "d", slicedUpTo: 8)),
        StandingCase(
            "past the pieces",
            .inStep.with {
                $0.slicedUpTo = 8
                $0.reach(8, lineage: "l8", isWhole: false)
            }, Standing(revision: 8, lineage: "l8", dataSet: "d")),
        StandingCase(
            "a snapshot in place of the pieces",
            .inStep.with {
                $0.slicedUpTo = 8
                $0.reach(7, lineage: "l7", isWhole: true)
            }, Standing(revision: 7, lineage: "l7", dataSet: "d")),
        StandingCase(
            "an answer after a staged snapshot",
            .fresh.with {
                $0.stage(Standing.manifest)
                $0.stage(upTo: 6, lineage: "l6", isCut: true)
            },
            Standing(
                staged: .init(
                    revision: 6, lineage: "l6", isCut: true, base: .snapshot(Standing.manifest)))),
        StandingCase(
            "rejoined",
            refetching.with {
                ($0.rejoining, $0.queuedAgain, $0.slicedUpTo) = (3, 2, 8)
                $0.missing = Standing.parts
                $0.rejoin(at: 2, lineage: "r2", dataSet: "d")
            }, Standing(revision: 2, lineage: "r2", dataSet: "d")),
        StandingCase(
            "emptied",
            .inStep.with {
                ($0.slicedUpTo, $0.missing) = (8, Standing.parts)
                $0.empty(mark: .init(revision: 4, lineage: "l4"))
            },
            Standing(
                dataSet: "d", refetching: .init(goal: 5), former: .init(revision: 5, lineage: "l5"))
        ),
        StandingCase(
            "emptied, of somebody who sees a part",
            .inStep.with {
                $0.view = 7
                $0.empty(mark: nil)
            },
            Standing(
                dataSet: "d", refetching: .init(goal: 5), former: .init(revision: 5, lineage: "l5"),
                view: 7, owesReceipt: true)
        ),
        StandingCase(
            "emptied without a lineage",
            .inStep.with {
                $0.lineage = nil
                $0.empty(mark: .init(revision: 4, lineage: "l4"))
            },
            Standing(
                dataSet: "d", refetching: .init(goal: 5), former: .init(revision: 4, lineage: "l4"))
        ),
        StandingCase(
            "emptied again on the way",
            refetching.with {
                ($0.revision, $0.lineage) = (2, "l2")
                $0.refetching?.isConfirmed = true
                $0.empty(mark: nil)
            }, refetching),
        StandingCase(
            "emptied again before the second confirmation",
            refetching.with {
                $0.reach(12, lineage: "l12", isWhole: false)
                $0.empty(mark: nil)
            }, refetching.with { $0.refetching?.goal = 12 }),
        StandingCase(
            "emptied before the first answer", .fresh.with { $0.empty(mark: nil) }, .fresh),
        StandingCase(
            "confirmed", refetching.with { $0.confirmHistory() },
            refetching.with { $0.refetching?.isConfirmed = true }),
        StandingCase(
            "confirmed once more",
            refetching.with {
                $0.refetching = nil
                $0.confirmHistory()
            }, .fresh),
    ]

    @Test("events change the standing", arguments: changes)
    func moves(_ one: StandingCase<Standing>) {
        #expect(one.standing == one.expected)
    }

    @Test("an installed part is missing no more; after the last, none is")
    func parts() {
        let rest = Standing.parts?.without("second")
        #expect(rest?.names == ["third"])
        #expect(rest?.snapshot?.next?.name == "third")
        #expect(rest?.without("third") == nil)
        #expect(MissingParts(Standing.manifest.parts.prefix(0), of: Standing.manifest) == nil)
    }

    // MARK: - The file

    @Test("every standing is read from the file as it was written, over any other")
    func isStored() throws {
        let device = try DeviceFixture.withTeams()
        let all = Self.conditions.map(\.standing) + Self.changes.map(\.standing)
        try device.store.inApplyingTransaction {
            var before = try device.store.standing
            for (one, other) in all.flatMap({ one in all.map { (one, $0) } }) {
                for after in [one, other] {
                    try after.write(to: device.store.applying, over: before)
                    before = try device.store.standing
                    try #require(before == after)
                }
            }
        }
    }

    /// Rows that no release writes together, and what a device makes of them.
    static let odd: [StandingCase<[String: Value]>] = [
        StandingCase(
            "the rest of staged data", .inStep,
            ["stagedCut": .integer(1), "stagedLineage": .text("l9"), "slicedPart": .integer(3)]),
        StandingCase(
            "parts without a manifest",
            .inStep.with { $0.missing = try? MissingParts(names: "second", manifest: nil) },
            ["seedingParts": .text("second")]),
        StandingCase("a manifest without parts", .inStep, ["seedingManifest": .text("{")]),
        StandingCase(
            "a former history of an older release",
            .inStep.with {
                $0.refetching = Standing.Refetching(goal: 9)
                $0.former = HistoryMark(revision: 9, lineage: "l9")
            }, ["anewRevision": .integer(9), "anewLineage": .text("l9")]),
        StandingCase(
            "a former history without a revision", .inStep, ["anewLineage": .text("l9")]),
        StandingCase(
            "a confirmation of nothing", .inStep,
            ["anewAsked": .integer(1), "anewGoal": .integer(9)]),
        StandingCase(
            "sets queued again before rejoining was stopped",
            .inStep.with { $0.queuedAgain = 2 }, ["rejoinQueued": .integer(2)]),
    ]

    @Test("rows that belong to no standing are passed over", arguments: odd)
    func reads(_ one: StandingCase<[String: Value]>) throws {
        let device = try DeviceFixture.withTeams()
        try device.store.changeStanding { $0 = .inStep }
        for (name, value) in one.expected { try device.store.applying.setState(name, value) }
        #expect(try device.store.standing == one.standing)
    }
}
