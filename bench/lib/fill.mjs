// Results as text for a guide. It changes only the text between `<!-- bench:NAME -->` and `<!-- /bench -->`.
import { machineLine } from './machine.mjs';
import { goalTable, table } from './table.mjs';

// The opening of the guide shows the others.
const inSection = ({ opens }) => !opens;
const notes = (goals) => goals.filter(({ met, note }) => !met && note).map(({ what, note }) => `- ${what}: ${note}`);

/** Returns the section of one benchmark: the command, the machine, the goals, the charts, the tables and the facts. */
export const sectionOf = (name, result) => {
  if (result === undefined) return `Not measured yet: \`npm run bench -- ${name}\`.`;
  const { command, rounds, machine, goals, charts, tables, facts } = result;
  const parts = [
    `\`${command}\`: ${machineLine(machine)}; ${rounds} rounds.`,
    goals.length > 0 && goalTable(goals),
    notes(goals).join('\n'),
    ...shown({ charts: charts.filter(inSection), tables: tables.filter(inSection), facts }, 'performance'),
  ];
  return parts.filter(Boolean).join('\n\n');
};

/** Returns a chart as an image with its alternative text: the title, unless the chart has another one. */
export const image = ({ id, title, alt = title }, folder) => `![${alt}](${folder}/${id}.svg)`;

/** Returns the charts, tables and facts of a result as text. The charts are in a folder next to the document. */
export const shown = ({ charts, tables, facts }, folder) => [
  ...charts.map((chart) => image(chart, folder)),
  ...tables.map((each) => `${each.title}:\n\n${table(each.columns, each.rows)}`),
  Object.entries(facts)
    .map(([fact, value]) => `- ${fact}: ${value}`)
    .join('\n'),
];

/** Returns a sentence about the goals, a table of the missed ones, and the reasons. */
export const summaryOf = (results) => {
  const goals = results.flatMap((result) => result.goals);
  const missed = goals.filter(({ met }) => !met);
  if (goals.length === 0) return 'Not measured yet: `npm run bench -- all`.';
  if (missed.length === 0) return `All ${goals.length} goals are met.`;
  const counted = `${goals.length - missed.length} of ${goals.length} goals are met. Missed:`;
  return [counted, goalTable(missed), notes(missed).join('\n')].filter(Boolean).join('\n\n');
};

/** Replaces the text between the marks `<!-- MARK:NAME -->` and `<!-- /MARK -->` of each section. Throws if the marks are missing. */
export const fill = (document, sections, mark = 'bench') =>
  Object.entries(sections).reduce((text, [name, section]) => {
    const [open, close] = [`<!-- ${mark}:${name} -->`, `<!-- /${mark} -->`];
    const from = text.indexOf(open);
    const to = text.indexOf(close, from);
    if (from === -1 || to === -1) throw new Error(`The document has no section ${name}: ${open} … ${close}`);
    return `${text.slice(0, from + open.length)}\n\n${section}\n\n${text.slice(to)}`;
  }, document);
