// Runs between require.js and the widgets' front end: where anywidget and the icons' typeface are,
// so that neither is looked for elsewhere. (The front end looks for its typeface beside the files
// its own modules would come from.)
(() => {
  const vendor = new URL("vendor/", document.currentScript.src).href;
  const own = ["base", "base7", "controls", "controls7", "html-manager", "html-manager/dist/libembed-amd"];
  const paths = { anywidget: vendor + "anywidget" };
  own.forEach((name) => (paths["@jupyter-widgets/" + name] = vendor + "widgets/" + name.split("/").pop()));
  require.config({ paths });
})();
