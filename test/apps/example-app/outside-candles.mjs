// Computes the expected candles from the frames, without any code of the app or the library.

/** Returns the frames in messages of the feed, with their parsed payloads. */
export const framesOf = (messages) =>
  messages.flatMap(({ events }) =>
    events
      .filter(({ type }) => type === 'frame')
      .map(({ receivedAt, data }) => ({ receivedAt, payload: JSON.parse(data) })),
  );

/** Returns the values in messages of the markets. */
export const valuesOf = (messages) =>
  messages.flatMap(({ events }) => events.filter(({ type }) => type === 'value').map(({ value }) => value));

/** Computes the candles of a period, market by market. Adds up sizes in thousandths, so that nothing gets rounded. */
export const countCandles = (frames, start, end) => {
  const trades = frames
    .filter(({ receivedAt }) => receivedAt >= start && receivedAt < end)
    .flatMap(({ payload }) => payload.trades);
  const candles = {};
  for (const symbol of new Set(trades.map((trade) => trade.symbol))) {
    const those = trades.filter((trade) => trade.symbol === symbol);
    const prices = those.map(({ price }) => price);
    const thousandths = those.reduce((sum, { size }) => sum + Math.round(size * 1_000), 0);
    candles[symbol] = [
      prices[0],
      Math.max(...prices),
      Math.min(...prices),
      prices.at(-1),
      thousandths / 1_000,
      those.length,
    ];
  }
  return candles;
};
