mod claim;
mod driver;
mod held_term;
mod model;
mod server;
mod standby;
mod table;
mod trust;
