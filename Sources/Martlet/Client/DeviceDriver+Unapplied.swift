internal import MartletDevice

/// Reports values that did not go into the tables, by a log line and an event. `ClientStatus` has
/// the counts.
extension DeviceDriver {
    /// Reports the values that were kept aside, quarantined or passed over when remote changes were
    /// applied.
    func tellUnapplied(_ report: RebaseReport) {
        for kept in report.keptAside {
            log.note(.info, Self.sentence(kept))
            publish(.keptAside(kept))
        }
        if report.quarantined > 0 {
            log.note(
                .warning,
                "The tables refused \(report.quarantined) records that others wrote; they are"
                    + " quarantined, with the reasons.")
            publish(.quarantined(report.quarantined))
        }
        tellPassedOver(report.passedOver)
    }

    /// Reports that changes arrived which the device had already.
    func tellPassedOver(_ count: Int) {
        guard count > 0 else { return }
        log.note(.debug, "\(count) changes had been applied already and were passed over.")
        publish(.passedOver(count))
    }

    private static func sentence(_ kept: KeptAside) -> String {
        guard !kept.attributes.isEmpty else {
            return
                "\(kept.records) records of \(kept.type) are kept aside: there is no table for them."
        }
        return "Values of \(kept.records) records of \(kept.type) are kept aside: its table has no"
            + " \(kept.attributes.joined(separator: ", "))."
    }
}
