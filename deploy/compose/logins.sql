-- The login roles of the services with one password for all, from ROLE_PASSWORD. A second run changes nothing but that.
\getenv password ROLE_PASSWORD
SELECT format('CREATE ROLE %I LOGIN IN ROLE %I', name, 'storefront_' || name)
FROM unnest(ARRAY['edge', 'relay', 'control']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec
SELECT format('ALTER ROLE %I PASSWORD %L', name, :'password')
FROM unnest(ARRAY['edge', 'relay', 'control']) AS name
\gexec
