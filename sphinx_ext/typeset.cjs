// Typeset formulas with MathJax. Read [[LaTeX, whether it is a display formula], ...] from standard
// input and write {formulas: [markup, ...], style} to standard output. The style sheet covers all
// characters, so it does not depend on the formulas.
const { readFileSync } = require("node:fs");

// Redundant attributes: styles of every formula that the style sheet or HTML sets anyway, and layout
// attributes of MathML, which is not drawn.
const NEEDLESS = / (?:style="position: relative;"|xmlns="[^"]*"|unselectable="on"|display="inline"|(?:stretchy|data-mjx-texclass)="[^"]*")/g;

const main = async () => {
  const MathJax = await require("mathjax").init({
    loader: { load: ["input/tex", "output/chtml", "a11y/assistive-mml"] },
    chtml: { adaptiveCSS: false, fontURL: "mathjax/output/chtml/fonts/woff-v2" },
  });
  const { adaptor } = MathJax.startup;
  const formulas = JSON.parse(readFileSync(0, "utf8")).map(([latex, display]) =>
    adaptor.outerHTML(MathJax.tex2chtml(latex, { display })).replace(NEEDLESS, ""));
  const style = `${adaptor.textContent(MathJax.chtmlStylesheet())}\nmjx-container { position: relative; }\n`;
  process.stdout.write(JSON.stringify({ formulas, style }));
};

main();
