import HTTPKit
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite("Signals that ask the process to end", .serialized)
struct TerminationSignalTests {
    @Test("others, which tools send to tell a service of something, end nothing")
    func othersSignals() async {
        let signal = await TerminationSignal()
        // Sent to the process, as tools do: this thread's own signals are held back.
        kill(getpid(), SIGUSR1)
        kill(getpid(), SIGUSR2)
        if isatty(STDERR_FILENO) != 1 { kill(getpid(), SIGHUP) }
        let waiting = Task { await signal.wait() }
        await signal.end()
        #expect(await waiting.value == nil)
    }
}
