import Testing

/// Tests what an app may rely on when it starts, stops and closes clients, and cancels who waits for them.
@Suite("Lives of clients", .timeLimit(.minutes(20)))
struct ClientLifeTests {
    @Test(
        "end every call, hold nobody up, leave no file open, and send what was saved",
        arguments: HostileSize.lives)
    func life(seed: UInt64) async throws {
        let life = try await ClientLife(seed: seed)
        do {
            try await life.run()
        } catch {
            Issue.record("\(error)")
        }
        await life.close()
    }
}
