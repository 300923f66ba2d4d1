// Renders the guide's app on a server. Runs in the app's folder. Prints the HTML and the network requests.
import '@angular/compiler';
import { readFile, writeFile } from 'node:fs/promises';
import { mergeApplicationConfig } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { provideServerRendering, renderApplication } from '@angular/platform-server';
import ts from 'typescript';

const requests = [];
globalThis.fetch = (url) => {
  requests.push(String(url));
  return new Promise(() => undefined);
};

const load = async (name) => {
  const compilerOptions = {
    module: ts.ModuleKind.ESNext,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
  };
  const code = ts.transpileModule(await readFile(`src/app/${name}.ts`, 'utf8'), { compilerOptions }).outputText;
  await writeFile(`ssr-${name}.mjs`, code);
  return import(`${process.cwd()}/ssr-${name}.mjs`);
};
const { App } = await load('app');
const { appConfig } = await load('app.config');

const config = mergeApplicationConfig(appConfig, { providers: [provideServerRendering()] });
const html = await renderApplication((context) => bootstrapApplication(App, config, context), {
  document: '<!doctype html><html><body><app-root></app-root></body></html>',
  url: 'http://127.0.0.1/',
  allowedHosts: ['127.0.0.1'],
});
console.log(JSON.stringify({ html, requests }));
