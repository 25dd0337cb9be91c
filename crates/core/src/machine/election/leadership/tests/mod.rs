mod claim;
mod driver;
mod held;
mod model;
mod server;
mod standby;
mod table;
mod trust;
