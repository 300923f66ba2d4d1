// A main thread that computes and does not return: nothing else runs on it meanwhile.

/** Blocks this thread for `ms`. */
export const spin = (ms) => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

/** Blocks it for `busyMs` of every `busyMs + freeMs`, until it is told to stop. */
export const spinAgainAndAgain = (busyMs, freeMs) => {
  let timer;
  const again = () => {
    spin(busyMs);
    timer = setTimeout(again, freeMs);
  };
  again();
  return () => clearTimeout(timer);
};
