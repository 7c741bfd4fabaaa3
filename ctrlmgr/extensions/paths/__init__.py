"""The paths in CustomResourceDefinitions: JSONPaths of columns and selectable fields, paths of scales and of rules."""
