// This script runs between require.js and the widgets' front end. It sets the paths of anywidget and
// the icon font, so that neither is loaded from another host. (The front end loads its font from the
// folder of its modules.)
(() => {
  const vendor = new URL("vendor/", document.currentScript.src).href;
  const own = ["base", "base7", "controls", "controls7", "html-manager", "html-manager/dist/libembed-amd"];
  const paths = { anywidget: vendor + "anywidget" };
  own.forEach((name) => (paths["@jupyter-widgets/" + name] = vendor + "widgets/" + name.split("/").pop()));
  require.config({ paths });
})();
