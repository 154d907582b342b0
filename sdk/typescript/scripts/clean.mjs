// Removes build output, so that a module that is gone from the sources is gone from the package too.

import { rmSync } from "node:fs";

for (const folder of process.argv.slice(2)) {
  rmSync(new URL(`../${folder}/`, import.meta.url), { recursive: true, force: true });
}
