// The recommended rules for the JavaScript of the pages.

import { readdirSync, readFileSync } from "node:fs";
import js from "@eslint/js";
import globals from "globals";

// A figure is one module, made from shared files and its own file, which has a default export
// (`module` in pu_lib/explorers/base.py). Each file may use the names of all shared files.
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
  { files: ["web/**"], languageOptions: { globals: { DOCUMENTATION_OPTIONS: false, require: false } } },
  { files: ["**/*.cjs"], languageOptions: { globals: globals.node } },
];
