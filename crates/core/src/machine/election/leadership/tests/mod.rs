mod claim;
mod driver;
mod model;
mod server;
mod table;
mod trust;
