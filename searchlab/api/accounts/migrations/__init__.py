"""Steps from one version of the tables to the next; `searchlab.storage.migrating` takes them."""
