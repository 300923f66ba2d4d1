// Blocks a thread with computation, so that nothing else runs on it.

/** Blocks this thread for `ms`. */
export const spin = (ms) => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

/** Blocks this thread for `busyMs` of every `busyMs + freeMs`. Returns a function that ends this. */
export const spinRepeatedly = (busyMs, freeMs) => {
  let timer;
  const again = () => {
    spin(busyMs);
    timer = setTimeout(again, freeMs);
  };
  again();
  return () => clearTimeout(timer);
};
