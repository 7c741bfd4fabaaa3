"""API priority and fairness determines which request runs next, and which requests wait or are refused.

A request is assigned to a FlowSchema and a flow (`flow_matching`), and the FlowSchema determines the priority level
(`level_state`). Each priority level has seats, which its queues share fairly (`fair_queuing`), and may borrow seats
that other levels do not use (`seat_allocation`). A large request needs several seats (`request_width`).
`fairness_filter` is the step of the handler chain that applies priority and fairness.

Source: apiserver `pkg/util/flowcontrol` and `pkg/server/filters/priority-and-fairness.go`.
"""
