extension Array {
    /// The element below which so many percent of an ascending array lie; not for an empty one.
    func percentile(_ percent: Int) -> Element {
        self[Swift.min(count - 1, count * percent / 100)]
    }
}
