// node audit.mjs <folder with node_modules> <URL of the service>
// Holds a service against the public audit suite of GraphQL over HTTP; prints what it found as JSON.
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { auditServer } = require("graphql-http");

const found = await auditServer({ url });
const told = found.map(({ id, name, status, reason }) => ({ id, name, status, reason }));
process.stdout.write(JSON.stringify(told));
