const bars = '▁▂▃▄▅▆▇█';

/** Draws numbers as bars, from nothing up to the largest of them. */
export const sparkline = (numbers: readonly number[]): string => {
  const most = Math.max(1, ...numbers);
  return numbers.map((number) => bars.charAt(Math.round((number / most) * (bars.length - 1)))).join('');
};
