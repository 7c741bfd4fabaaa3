"""Events (the API objects): how they are recorded, merged when they repeat, and expired."""
