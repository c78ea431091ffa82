// Typeset formulas with MathJax: [[LaTeX, whether it is displayed], ...] on standard input gives
// {formulas: [markup, ...], style} on standard output. The style sheet knows every character, so that
// it is the same whichever formulas are asked for.
const { readFileSync } = require("node:fs");

// What is the same in every formula and said in the style sheet or by HTML itself, and what MathML that
// is not drawn need not say of its looks.
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
