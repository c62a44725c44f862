// This target is filled by the steps that follow.
