/// Something that a device or a server does, with an input of any size.
struct Operation: Sendable {
    let name: String
    /// The smaller of the two inputs.
    var size = 100
    /// How many times as much work the larger input may take: ten times as much, and what searches in
    /// larger tables add.
    var allowed = 15.0
    /// Chance decides what is done. By chance, too, events that are rare cost more in the longer input than
    /// in the shorter one, so one that seems too dear is tried once more, both inputs ten times as long.
    var isRandom = false
    let run: @Sendable (GrowingWorld, Int) throws -> Void
    var script = GrowingWorld.script
    /// The declarations, where they depend on the input.
    var scripts: (@Sendable (Int) -> String)?

    /// The larger input is so many times the smaller one.
    static let growth = 10

    init(
        _ name: String, size: Int = 100, allowed: Double = 15,
        script: String = GrowingWorld.script, scripts: (@Sendable (Int) -> String)? = nil,
        _ run: @escaping @Sendable (GrowingWorld, Int) throws -> Void
    ) {
        self.name = name
        self.size = size
        self.allowed = allowed
        self.script = script
        self.scripts = scripts
        self.run = run
    }

    /// What an input of some size costs, by phase.
    func counted(_ size: Int) throws -> [String: Work] {
        let world = try GrowingWorld(script: scripts?(size) ?? script)
        try run(world, size)
        return world.work
    }

    static let all = saving + exchanging + refusing + others + files + serving + shapes
}
