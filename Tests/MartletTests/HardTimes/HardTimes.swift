import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import RandomKit
import SQLiteFaults
import SmallWorlds

@testable import Martlet
@testable import MartletDevice

/// A device that is on for hours while little of what it asks for comes, on virtual time, with a real
/// server and others who save there.
///
/// What a person may expect is judged: few requests while nothing works, no stop but by the server's own
/// word, an exchange that moves is left alone, and once the network is well all is there soon.
final class HardTimes {
    enum Occurrence {
        case event(DeviceNode.Event)
        case timer(Timer, Int)
        /// A request comes to the server.
        case arrives(exchange: Int, body: [UInt8], Spell.Exchanges)
        case openStream(Int, DeltaCursor)
        case sign(stream: Int)
        case save(spell: Int)
        case news(spell: Int)
        /// The device should have this by now.
        case due(Revision)
        /// Somebody has the device's data compared.
        case compare(spell: Int)
    }

    enum Timer {
        case main, stream, part
    }

    /// A stream as the server sees it.
    struct Listener {
        let number: Int
        let asked: Int64
        var request: DeltaRequest
        /// When the last of it arrives.
        var arrival: Int64
    }

    let seed: UInt64
    var random: SplitMix64
    var now: Int64 = 1_700_000_000_000
    let server: SmallServer
    let other: SmallDevice
    let disk: FaultDisk
    let node: DeviceNode
    let policy: PullPolicy
    var spell = Spell()
    var spellNumber = 0
    var begun: Int64 = 0
    /// Since when exchanges get through.
    var wellSince: Int64?
    var budget = Budget()
    var story: [String] = []
    var stream: Listener?
    /// Answers and batches of before.
    var answers: [[UInt8]] = []
    var batches: [[UInt8]] = []
    /// Answers to comparisons, of this device and of the other one.
    var comparisons: [[UInt8]] = []
    /// When bytes of an exchange moved last.
    var moved: [Int: Int64] = [:]
    /// Exchanges whose bytes are on the way.
    var underWay: Set<Int> = []
    /// How far the device has got.
    private var standing: [Int64] = []
    /// What the server lists; it keeps two.
    var snapshots: [SmallSnapshot] = []
    private(set) var saves = 0
    private var made: Set<String> = []
    private var timers: [Timer: Int] = [:]
    private var queue: [(time: Int64, order: Int, what: Occurrence)] = []
    private var order = 0

    init(seed: UInt64) throws {
        self.seed = seed
        var random = SplitMix64(seed: seed)
        var pace = SmallPace()
        pace.answerBytes = Limits.answerBytes
        let server = SmallServer(switchedOff: FaultDisk(name: DiskName.next("hard-server")))
        server.pace = pace
        try server.open()
        self.server = server
        other = try SmallDevice(FaultDisk(name: DiskName.next("hard-other")), number: 1)
        other.pace = pace
        disk = FaultDisk(name: DiskName.next("hard"))
        var bits = SplitMix64(seed: seed ^ 7)
        let store = try DeviceStore(
            path: "device.sqlite", script: SmallWorld.script, vfs: disk.vfsName,
            randomBits: { bits.next() })
        policy = random.pick([
            .live(), .live(), .live(pollingEvery: .seconds(600)), .live(pollingEvery: nil),
            .polling(every: .seconds(30)), .polling(every: .seconds(300)), .onRequest,
        ])
        var options = DeviceNode.Options()
        options.pollInterval = policy.pollMilliseconds
        options.isLive = policy.isLive
        options.usesSnapshots = random.below(2) == 0
        node = DeviceNode(store: store, options: options)
        self.random = random
        server.checkAnswer = { [unowned self] answer in
            answers = answers.suffix(11) + [answer]
        }
    }

    /// - Throws: `HardTimesFault` for the first promise that is broken.
    func run() throws {
        for number in 0..<random.below(30) { try makeNews(bytes: 200 + number * 40) }
        tell("policy \(policy), snapshots \(node.options.usesSnapshots)")
        try handle(.wake(isUrgent: true))
        if random.below(3) > 0 {
            // They have met before the hard times.
            var first = Spell()
            (first.newsPause, first.length) = (60_000, 600_000)
            try begin(first)
            try pass(first.length)
        }
        for _ in 0..<2 + random.below(2) {
            try begin(.random(&random))
            try pass(spell.length)
            try judgeSpell()
        }
        var rest = Spell()
        rest.length = Self.recovery
        try begin(rest)
        try pass(rest.length)
        try judgeRest()
    }

    /// Milliseconds until all is there, once the network is well.
    private static var recovery: Int64 { 20 * 60_000 }

    func failure(_ message: String) -> HardTimesFault {
        HardTimesFault(
            description: "seed \(seed): \(message)\n" + story.suffix(150).joined(separator: "\n"))
    }

    func tell(_ what: String) { story.append("\((now - 1_700_000_000_000) / 1_000) s: \(what)") }

    // MARK: - Time

    func put(_ what: Occurrence, after milliseconds: Int64) {
        order += 1
        queue.append((now + milliseconds, order, what))
    }

    func pass(_ milliseconds: Int64) throws {
        let end = now + milliseconds
        while let index = queue.indices.min(by: { earlier(queue[$0], queue[$1]) }),
            queue[index].time <= end
        {
            let next = queue.remove(at: index)
            now = max(now, next.time)
            try occur(next.what)
        }
        now = end
    }

    private func earlier(
        _ one: (time: Int64, order: Int, what: Occurrence),
        _ two: (time: Int64, order: Int, what: Occurrence)
    ) -> Bool {
        (one.time, one.order) < (two.time, two.order)
    }

    private func occur(_ what: Occurrence) throws {
        switch what {
        case .event(let event):
            if case .progress(let exchange) = event {
                guard underWay.contains(exchange) else { return }
                moved[exchange] = now
            }
            if case .answered(let exchange, _, _, _) = event { underWay.remove(exchange) }
            if case .failed(let exchange, _) = event { underWay.remove(exchange) }
            try handle(event)
        case .timer(let timer, let number):
            if timers[timer] == number { try handle(.timer(number)) }
        case .arrives(let exchange, let body, let way):
            if underWay.contains(exchange) { try arrive(exchange, body, way) }
        case .openStream(let number, let cursor): try openStream(number, cursor)
        case .sign(let number): sign(number)
        case .save(let number):
            guard number == spellNumber else { return }
            try save()
            putSave()
        case .news(let number):
            guard number == spellNumber else { return }
            try makeNews(bytes: random.below(9) == 0 ? 6_000 : 60)
            putNews()
        case .compare(let number):
            guard number == spellNumber else { return }
            try compare()
            put(.compare(spell: number), after: 1_800_000)
        case .due(let revision):
            guard let wellSince, now - wellSince > Self.recovery,
                try node.store.revision < revision
            else { return }
            throw failure("the device polls and is behind revision \(revision) all the same")
        }
    }

    // MARK: - People

    func startPeople() {
        put(.compare(spell: spellNumber), after: Int64(random.below(3_600_000)))
        putSave()
        putNews()
    }

    private func putSave() {
        guard let pause = spell.savePause else { return }
        put(.save(spell: spellNumber), after: 1 + Int64(random.below(Int(pause))))
    }

    private func putNews() {
        guard let pause = spell.newsPause else { return }
        put(.news(spell: spellNumber), after: 1 + Int64(random.below(Int(pause))))
    }

    private func save() throws {
        saves += 1
        let name = "own-\(saves)"
        made.insert(name)
        let body = String(repeating: "x", count: random.below(6) == 0 ? 9_000 : 40)
        _ = try node.store.write(now: now) { context in
            try context.insert("notes", ["body": .text(body)], id: name)
        }
        budget.allow(.exchange, 2, now: now)
        // A save starts a device again that the server's word over the stream has stopped.
        if case .answered(let problem, _) = spell.streams, problem.isOfServer,
            problem.status == 401
        {
            budget.allow(.stream, 1, now: now)
        }
        try handle(.wake(isUrgent: false))
    }

    /// Somebody else saves something.
    func makeNews(bytes: Int) throws {
        let name = "other-\(made.count)"
        made.insert(name)
        try other.write { context in
            try context.insert(
                "notes", ["body": .text(String(repeating: "y", count: bytes))], id: name)
        }
        try other.sync(with: server)
        budget.allow(.exchange, 2, now: now)
        if let interval = policy.pollMilliseconds {
            // A poll is put off as long as a stream is there, which may turn out to be a silent one.
            put(.due(try other.store.revision), after: interval + 120_000)
        }
        try push()
    }

    // MARK: - The device

    func handle(_ event: DeviceNode.Event) throws {
        for action in node.handle(event, now: now) { try perform(action) }
    }

    private func ask(_ kind: Budget.Kind) throws {
        tell("asks: \(kind)")
        let excess = budget.ask(
            kind, in: spell, pollInterval: policy.pollMilliseconds, now: now)
        if let excess { throw failure(excess) }
    }

    private func perform(_ action: DeviceNode.Action) throws {
        switch action {
        case .send(let exchange, let body):
            try ask(.exchange)
            send(exchange, body)
        case .cancel(let exchange):
            if underWay.contains(exchange), let last = moved[exchange],
                now - last < node.options.exchangeTimeout
            {
                throw failure("an exchange was given up \(now - last) ms after its last byte")
            }
            underWay.remove(exchange)
        case .setTimer(let number, let milliseconds): set(.main, number, milliseconds)
        case .setStreamTimer(let number, let milliseconds): set(.stream, number, milliseconds)
        case .setPartTimer(let number, let milliseconds): set(.part, number, milliseconds)
        case .applyNext(let exchange): put(.event(.applyNext(exchange: exchange)), after: 0)
        case .tidy: put(.event(.tidy), after: 0)
        case .openStream(let number, let cursor):
            try ask(.stream)
            put(.openStream(number, cursor), after: latency())
        case .closeStream(let number): if stream?.number == number { stream = nil }
        case .fetchSnapshot(let number):
            try ask(.download)
            try fetchSnapshot(number)
        case .fetchPart(let number, let part, let manifest):
            try ask(.download)
            try fetchPart(number, part.name, of: manifest)
        case .notify(.seeded):
            budget.allow(.download, 1, now: now)
            tell("a part is here")
        case .notify(.failed(let error, let retryIn)): try judge(error, retryIn)
        case .notify(.seedingFailed(let error, let retryIn)):
            tell("no part, again in \(retryIn) ms: \(error.message)")
        case .notify(.exchanged), .notify(.applied):
            let now = try [node.store.revision, Int64(node.store.outboxCount)]
            if now != standing { budget.allow(.exchange, 1, now: self.now) }
            standing = now
        case .notify(.streamed), .notify(.live), .notify(.late), .notify(.passedOver): break
        }
    }

    private func set(_ timer: Timer, _ number: Int, _ milliseconds: Int64) {
        timers[timer] = number
        put(.timer(timer, number), after: milliseconds)
    }

    func latency() -> Int64 { 5 + Int64(random.below(600)) }

    // MARK: - The judgement

    private func judge(_ error: SyncError, _ retryIn: Int64?) throws {
        tell(
            "failed, again in \(retryIn.map { "\($0) ms" } ?? "-"): \(error.kind) \(error.message)")
        guard !mayStop else { return }
        guard retryIn != nil else { throw failure("the device was stopped: \(error.message)") }
        guard error.remedy == .wait else {
            throw failure("a person is told to do something (\(error.kind)): \(error.message)")
        }
    }

    /// A line that carries little carries all in the end.
    private func judgeSpell() throws {
        guard case .narrow = spell.exchanges, spell.savePause == nil, spell.newsPause == nil,
            spell.length >= 90 * 60_000
        else { return }
        try judgeQueue()
    }

    private func judgeQueue() throws {
        let left = try node.store.outboxCount
        guard left == 0 else { throw failure("\(left) sets were not sent") }
    }

    private func judgeRest() throws {
        try judgeQueue()
        if policy == .onRequest {
            try handle(.wake(isUrgent: true))
            try pass(60_000)
        }
        try other.sync(with: server)
        let store = node.store
        let (reached, newest) = (try store.revision, try other.store.revision)
        guard reached == newest else {
            throw failure("the device rests at revision \(reached), the server at \(newest)")
        }
        guard try store.pendingSnapshot == nil else { throw failure("parts are still to come") }
        if policy.isLive, !node.isStreaming { throw failure("the stream has not come back") }
        let parked = try store.parked().map { $0.message }
        guard parked.isEmpty else { throw failure("parked: \(parked)") }
        let (own, others) = (try store.shownState(), try other.store.shownState())
        guard own == others else { throw failure("the device shows something else") }
        let names = Set((own["notes"] ?? [:]).keys.map { "\($0)" })
        guard names.count == made.count else {
            throw failure("\(made.count) notes were made, \(names.count) are there")
        }
    }
}

struct HardTimesFault: Error, CustomStringConvertible {
    let description: String
}
