//! The model check is the test program `exhaustive` of this package. It is a package of its own, because it needs more
//! optimisation than the simulator.
