/// Decides which changes since the last sync a crash leaves on the disk.
struct SurvivalJudge {
    private let survival: FaultDisk.Survival
    /// The number of the change that is torn by a crash that keeps a prefix. Changes with lower
    /// numbers survive.
    private let cut: Int

    /// - Parameter pending: The numbers of all changes since the last sync, in order.
    init(
        _ survival: FaultDisk.Survival, pending: [Int],
        using random: inout some RandomNumberGenerator
    ) {
        self.survival = survival
        cut =
            survival == .prefix
            ? pending.randomElement(using: &random) ?? 0 : 0
    }

    func keepsName(_ number: Int, using random: inout some RandomNumberGenerator) -> Bool {
        switch survival {
        case .nothing: false
        case .everything: true
        case .prefix: number < cut
        case .subset, .sectors: Bool.random(using: &random)
        }
    }

    func kept(
        _ number: Int, _ change: StoredFile.Change, using random: inout some RandomNumberGenerator
    ) -> StoredFile.Kept {
        switch survival {
        case .nothing: return .none
        case .everything: return .all
        case .subset: return Bool.random(using: &random) ? .all : .none
        case .prefix where number != cut: return number < cut ? .all : .none
        case .prefix, .sectors: break
        }
        guard case .write(let offset, let bytes) = change else {
            return Bool.random(using: &random) ? .all : .none
        }
        let count = StoredFile.sectors(of: bytes.count, at: offset).count
        if survival == .prefix {
            let first = Int.random(in: 0...count, using: &random)
            return .sectors((0..<count).map { $0 < first })
        }
        return .sectors((0..<count).map { _ in Bool.random(using: &random) })
    }
}
