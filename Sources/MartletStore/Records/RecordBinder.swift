internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Binds the properties of records of one type directly to the parameters of an INSERT.
///
/// The first record of a type shows which names the type encodes, and in which order. Later records
/// are only compared with them. If a record has other names, a value that the column does not take,
/// or a text with a NUL, the caller inserts it through `RecordValues`, which also reports the
/// error.
final class RecordBinder: RecordEncoder {
    /// A name that the type encodes.
    struct Slot {
        let name: String
        let kind: AttributeKind
        /// The parameter, counted from 1; 0 if the table has no such column.
        let parameter: Int32
    }

    private let type: ObjectIdentifier
    private let slots: [Slot]
    private let statement: Statement
    /// Whether a negative integer may be a temporary id that now has a permanent one.
    private let mayHoldTemporaryIDs: Bool
    /// The position of the key's column; nil if the key has several columns, or if there is none.
    private let keySlot: Int?
    private var next = 0
    private var suits = true
    /// Whether a record of the type has ever been encoded here.
    private(set) var wasAsked = false
    /// Whether all properties of the current record are bound.
    private(set) var isBound = false
    /// The key of the current record; null if it must be made, nil if there is no key column.
    private(set) var key: SQLValue?

    init(
        type: ObjectIdentifier, slots: [Slot], key: String?, statement: Statement,
        mayHoldTemporaryIDs: Bool
    ) {
        self.mayHoldTemporaryIDs = mayHoldTemporaryIDs
        self.type = type
        self.slots = slots
        self.statement = statement
        keySlot = slots.firstIndex { $0.name == key && $0.parameter > 0 }
    }

    override var keepsContainer: Bool { true }

    /// Prepares for the next record.
    func begin() {
        isBound = false
        key = nil
    }

    /// Binds a record's properties.
    /// - Returns: Whether all were bound. Nothing is bound if the record has another type, or if a
    ///   record is already bound.
    func bind<Item: Encodable>(_ record: Item) -> Bool {
        guard ObjectIdentifier(Item.self) == type, !isBound else { return false }
        wasAsked = true
        next = 0
        suits = true
        do {
            try record.encode(to: self)
        } catch {
            return false
        }
        isBound = suits && next == slots.count && single == nil && !isList
        return isBound
    }

    /// Binds the key that was made for the record.
    func bind(key: SQLValue) {
        guard let keySlot else { return }
        switch key {
        case .integer(let number):
            statement.bind(slots[keySlot].parameter, integer: number)
        default:
            _ = bind(key, slots[keySlot])
        }
    }

    private func slot(_ name: String) -> Slot? {
        guard suits, next < slots.count, slots[next].name == name else {
            suits = false
            return nil
        }
        next += 1
        return slots[next - 1]
    }

    private var isKey: Bool { next - 1 == keySlot }

    private func bind(_ value: SQLValue, _ slot: Slot) -> Bool {
        guard slot.parameter > 0 else { return true }
        guard TableStatements.suits(value, slot.kind) else { return false }
        if mayHoldTemporaryIDs, case .integer(let number) = value, number < 0 { return false }
        switch value {
        case .null: statement.bindNull(slot.parameter)
        case .integer(let number): statement.bind(slot.parameter, integer: number)
        case .real(let number): statement.bind(slot.parameter, real: number)
        case .text(let text): return statement.bindUnlessNUL(slot.parameter, text: text)
        case .blob(let bytes): statement.bind(slot.parameter, blob: bytes)
        }
        return true
    }

    override func put(_ value: SQLValue, _ name: String) {
        guard let slot = slot(name) else { return }
        if isKey { key = value }
        suits = bind(value, slot)
    }

    override func putNull(_ name: String) {
        guard let slot = slot(name) else { return }
        if isKey { key = .null }
        if slot.parameter > 0 { statement.bindNull(slot.parameter) }
    }

    override func put(integer: Int64, _ name: String) {
        guard let slot = slot(name) else { return }
        guard slot.kind == .integer, slot.parameter > 0, !isKey, integer >= 0 else {
            next -= 1
            return put(.integer(integer), name)
        }
        statement.bind(slot.parameter, integer: integer)
    }

    override func put(real: Double, _ name: String) {
        guard let slot = slot(name) else { return }
        guard slot.kind == .real, slot.parameter > 0, !isKey, !real.isNaN else {
            next -= 1
            return put(real.sqlValue, name)
        }
        statement.bind(slot.parameter, real: real)
    }

    override func put(text: String, _ name: String) {
        guard let slot = slot(name) else { return }
        guard slot.kind == .text, slot.parameter > 0 else {
            next -= 1
            return put(.text(text), name)
        }
        if isKey { key = .text(text) }
        suits = statement.bindUnlessNUL(slot.parameter, text: text)
    }
}
