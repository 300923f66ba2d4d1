import { parser } from '@prometheus-io/lezer-promql';

/** What a query needs: the metrics that it reads, and all labels that it names. */
export interface QueryNames {
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
}

/** Parses a query of Prometheus with the grammar of Prometheus. Throws if the query is not valid. */
export const namesIn = (query: string): QueryNames => {
  const metrics = new Set<string>();
  const labels = new Set<string>();
  parser.parse(query).iterate({
    enter: (node) => {
      const { type, name, from, to } = node;
      if (type.isError) throw new Error(`Not a query, at character ${from}: ${query}`);
      if (name === 'LabelName') labels.add(query.slice(from, to));
      if (name === 'Identifier' && node.matchContext(['VectorSelector'])) metrics.add(query.slice(from, to));
    },
  });
  return { metrics: [...metrics], labels: [...labels] };
};

/** Returns the labels of each metric in a text of Prometheus. */
export const labelsByMetric = (text: string): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>();
  for (const [, metric = '', labels = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(metric) ?? new Set();
    found.set(metric, known);
    for (const [, label = ''] of labels.matchAll(/(?:^|,)([a-z_]+)="/g)) known.add(label);
  }
  return found;
};
