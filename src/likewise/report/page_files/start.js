// Every block is watched until it is first seen.
blocks.forEach(place => watch.observe(place));
document.documentElement.dataset.ready = "1";
