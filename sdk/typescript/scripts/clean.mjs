// Removes the build output, so that the package has no module without a source.

import { rmSync } from "node:fs";

for (const folder of process.argv.slice(2)) {
  rmSync(new URL(`../${folder}/`, import.meta.url), { recursive: true, force: true });
}
