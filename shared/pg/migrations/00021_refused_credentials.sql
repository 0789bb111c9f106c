-- A credential that its provider refuses, though nothing told of an uninstallation.

-- +goose Up

-- refused_at: the first refusal since the credential was stored and the shop was last read. What is older than either is
-- over, so that no release has to clear it.
ALTER TABLE control.credentials ADD COLUMN refused_at timestamptz;
GRANT UPDATE (refused_at) ON control.credentials TO storefront_control;
