// From values to positions: linear, logarithmic, or one position for each name.

const nice = (size) => {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 2.5, 5, 10].find((step) => step * power >= size * 0.999) * power;
};

const linear = (values) => {
  const most = Math.max(...values, 0) || 1;
  const step = nice(most / 5);
  const last = Math.ceil(most / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(last / step) + 1 }, (_, n) => n * step);
  return { ticks, part: (value) => value / last };
};

const logarithmic = (values) => {
  const positive = values.filter((value) => value > 0);
  const from = Math.floor(Math.log10(Math.min(...positive)) + 1e-9);
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...positive)) - 1e-9));
  const ticks = Array.from({ length: to - from + 1 }, (_, n) => 10 ** (from + n));
  return { ticks, part: (value) => Math.max(0, (Math.log10(value) - from) / (to - from)) };
};

const named = (values) => {
  const ticks = [...new Set(values)];
  return { ticks, part: (value) => (ticks.indexOf(value) + 0.5) / ticks.length };
};

/** Returns the ticks of an axis, and a function from a value to its position on the axis, from 0 to 1. */
export const scale = (values, isLog) =>
  values.some((value) => typeof value !== 'number') ? named(values) : isLog ? logarithmic(values) : linear(values);

const units = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** Returns the label of a tick: 20k, 1.5M. */
export const tickLabel = (value) => {
  if (typeof value !== 'number') return value;
  const [size, unit] = units.find(([least]) => Math.abs(value) >= least) ?? [1, ''];
  return `${Number((value / size).toPrecision(3))}${unit}`;
};
