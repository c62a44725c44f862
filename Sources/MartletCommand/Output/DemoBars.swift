import MartletDemo
import Synchronization

/// A progress bar for each stage of a demo, one below the other.
final class DemoBars: Sendable {
    private struct State {
        var stage: DemoProgress.Stage?
        var bar: ProgressBar?
    }

    private let console: Console
    private let state = Mutex(State())

    init(console: Console) {
        self.console = console
    }

    func show(_ progress: DemoProgress) {
        let bar = state.withLock { state in
            if state.stage != progress.stage || state.bar == nil {
                state.bar?.finish()
                state.stage = progress.stage
                state.bar = ProgressBar(Self.title(progress.stage), console: console)
            }
            return state.bar
        }
        bar?.show(done: progress.done, of: progress.total, detail: progress.detail)
    }

    func finish() {
        state.withLock { $0.bar?.finish() }
    }

    private static func title(_ stage: DemoProgress.Stage) -> String {
        let width = DemoProgress.Stage.allCases.map(\.rawValue.count).max() ?? 0
        return stage.rawValue
            + String(repeating: " ", count: width - stage.rawValue.count)
    }
}
