mod claim;
mod driver;
mod model;
mod server;
mod standby;
mod table;
mod trust;
