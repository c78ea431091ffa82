// Apply ESLint's recommended rules to the JavaScript of the pages.

import { readdirSync, readFileSync } from "node:fs";
import js from "@eslint/js";
import globals from "globals";

// Each figure is one module, concatenated from shared files and one file with a default export
// (see `module` in pu_lib/explorers/base.py). Every file may use the names of all shared files.
const FOLDER = "pu_lib/explorers";
const texts = new Map(readdirSync(FOLDER).filter((name) => name.endsWith(".js"))
  .map((name) => [`${FOLDER}/${name}`, readFileSync(`${FOLDER}/${name}`, "utf8")]));
const shared = [...texts].filter(([, text]) => !/^export default/m.test(text));
const names = shared.flatMap(([, text]) =>
  [...text.matchAll(/^(?:export )?(?:const|function\*?) (\w+)/gm)].map(([, name]) => name));

export default [
  js.configs.recommended,
  { languageOptions: { globals: globals.browser } },
  { files: ["pu_lib/**"], languageOptions: { globals: Object.fromEntries(names.map((name) => [name, false])) } },
  { files: shared.map(([path]) => path), rules: { "no-unused-vars": ["error", { varsIgnorePattern: `^(${names.join("|")})$` }] } },
  { files: ["web/**"], languageOptions: { globals: { DOCUMENTATION_OPTIONS: false, Scorer: false, Search: false, require: false } } },
  { files: ["**/*.cjs"], languageOptions: { globals: globals.node } },
];
