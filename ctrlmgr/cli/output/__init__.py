"""How commands print: lines, columns, trees and bars for people, JSON and CSV for machines."""
